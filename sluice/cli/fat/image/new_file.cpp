#include "sluice/cli/fat/image/new_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sluice/base/random.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::cli {
namespace {

constexpr unsigned names_tried_max = 64;
constexpr unsigned permission_bits = 0666;  // before the umask

int open_retried(int directory, const char* name, int flags) noexcept {
    for (;;) {
        const int descriptor = ::openat(directory, name, flags | O_WRONLY | O_CLOEXEC, permission_bits);
        if (descriptor >= 0 or errno != EINTR) return descriptor;
    }
}

io::file_handle owned(int descriptor) noexcept {
    return io::file_handle(
        {.descriptor = descriptor, .kind = io::handle_kind::file, .readable = false, .writable = true});
}

// Kernels without O_TMPFILE treat it as an attempt to write to a directory.
bool lacks_nameless_files(int code) noexcept {
    return code == EOPNOTSUPP or code == EISDIR or code == ENOENT or code == EINVAL;
}

// The errors of linkat(2) if this file system, or a sandbox, does not give a
// name to a nameless file.
bool lacks_late_names(const error& why) noexcept {
    return why == std::errc::operation_not_supported or why == std::errc::operation_not_permitted or
           why == std::errc::permission_denied or why == std::errc::no_such_file_or_directory or
           why == std::errc::too_many_links or why == std::errc::invalid_argument or
           why == std::errc::function_not_supported or why == std::errc::cross_device_link;
}

}  // namespace

int why_not_replaced(const io::path_handle& directory, const std::string& name) noexcept {
    const auto there = io::status_at(directory, name, io::follow::no, io::stat_fields::type);
    if (not there or there->type == io::file_type::regular or there->type == io::file_type::symlink) return 0;
    return there->type == io::file_type::directory ? EISDIR : EEXIST;
}

new_file::form new_file::form_for(const io::path_handle& directory) noexcept {
    const auto volume = io::volume_of(directory);
    return volume and volume->reach == io::volume_reach::this_host ? form::nameless : form::named;
}

result<new_file> new_file::create(const io::path_handle& directory, form how) noexcept {
    const int at = directory.descriptor();
    if (how == form::nameless) {
        const int descriptor = open_retried(at, ".", O_TMPFILE);
        if (descriptor >= 0) return new_file(directory, owned(descriptor), {});
        return failure({lacks_nameless_files(errno) ? EOPNOTSUPP : errno, "create a file"});
    }
    for (unsigned i = 0; i != names_tried_max; ++i) {
        system_random numbers;
        std::string name = fmt::format(".sluice-{:016x}", numbers.next_u64());
        const int descriptor = open_retried(at, name.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW);
        if (descriptor >= 0) return new_file(directory, owned(descriptor), std::move(name));
        if (errno != EEXIST) return failure({errno, "create a file"});
    }
    return failure({EEXIST, "create a file"});
}

result<new_file> new_file::create_under(const io::path_handle& directory, const std::string& name) noexcept {
    const int descriptor = open_retried(directory.descriptor(), name.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW);
    if (descriptor < 0) return failure({errno, "create a file"});
    return new_file(directory, owned(descriptor), name);
}

new_file::new_file(new_file&& other) noexcept
    : directory_(other.directory_),
      file_(std::move(other.file_)),
      present_(std::exchange(other.present_, {})) {}

new_file::~new_file() {
    if (not present_.empty()) (void)::unlinkat(directory_->descriptor(), present_.c_str(), 0);
}

result<void> new_file::name_it(const std::string& name) noexcept {
    if (present_.empty()) {
        const auto linked = io::link(file_, *directory_, name);
        if (linked) return {};
        if (linked.error() != std::errc::file_exists)
            return failure(lacks_late_names(linked.error()) ? error(EOPNOTSUPP, "name a file")
                                                            : linked.error());
    }
    if (present_ == name) {
        present_.clear();
        return {};
    }
    if (const int code = why_not_replaced(*directory_, name); code != 0) return failure({code, "replace"});
    if (present_.empty()) return io::relink(file_, *directory_, name, io::replace::yes);
    const int at = directory_->descriptor();
    if (::renameat(at, present_.c_str(), at, name.c_str()) != 0) return failure({errno, "rename"});
    present_.clear();
    return {};
}

result<void> new_file::become(const std::string& name) noexcept {
    if (present_.empty()) {
        if (const auto named = name_it(name); not named) return named;
        return file_.close();
    }
    if (const auto closed = file_.close(); not closed) return closed;
    return name_it(name);
}

}  // namespace sluice::cli
