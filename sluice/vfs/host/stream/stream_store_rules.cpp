#include "sluice/vfs/host/stream/stream_store_rules.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/host/stream/stream_store_names.hpp"

namespace sluice::vfs {
namespace {

namespace fs = std::filesystem;

std::string octal(unsigned mode) {
    std::array<char, 16> text{};
    (void)std::snprintf(text.data(), text.size(), "%05o", mode);
    return text.data();
}

}  // namespace

std::string explain_unusable_store(const io::path_handle& base, const error& why) {
    if (why.code() != EACCES) return why.message();
    const std::string name(stream_store_name);
    const auto status =
        io::status_at(base, name, io::follow::no,
                      io::stat_fields::type | io::stat_fields::permissions | io::stat_fields::owner);
    if (not status) return why.message();
    if (status->type == io::file_type::symlink)
        return name + ": is a symbolic link, which the server does not follow; remove it";
    if (status->type != io::file_type::directory) return name + ": is not a directory; remove it";
    const std::string rule = "only the account that runs the server may have rights to it";
    if (status->user_id != ::geteuid())
        return name + ": belongs to user " + std::to_string(status->user_id) + ", not to user " +
               std::to_string(::geteuid()) + ": " + rule +
               "; run as its owner, or change the owner of all in it";
    constexpr unsigned rights_of_others = 077;
    if ((status->permission_bits & rights_of_others) != 0)
        return name + ": has mode " + octal(status->permission_bits) + ": " + rule + "; use 'chmod " +
               octal(stream_directory_bits) + ' ' + name + "', if other accounts have not changed it";
    return why.message();
}

std::string outer_store_of(const std::string& directory) {
    std::error_code unknown;
    fs::path here = fs::canonical(directory, unknown);
    struct stat inner{};
    if (unknown or ::lstat(here.c_str(), &inner) != 0) return {};
    std::string outermost;
    while (here.has_relative_path()) {
        here = here.parent_path();
        struct stat outer{};
        if (::lstat(here.c_str(), &outer) != 0 or outer.st_dev != inner.st_dev) break;
        struct stat store{};
        const fs::path named = here / stream_store_name;
        if (::lstat(named.c_str(), &store) == 0 and S_ISDIR(store.st_mode) and store.st_uid == ::geteuid())
            outermost = here.string();
    }
    return outermost;
}

}  // namespace sluice::vfs
