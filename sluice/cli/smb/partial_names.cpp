#include "sluice/cli/smb/partial_names.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ranges>
#include <vector>

#include "sluice/base/endian.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/smb/auth/hmac.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using key_bytes = std::array<std::byte, 32>;

// Another process of this account may create the file at the same time: the first complete one
// stays.
constexpr unsigned key_attempts_max = 2;

// With sudo, HOME may be that of another account, which could use neither the key nor the
// directories.
constexpr error not_of_this_account(EPERM, "create a key in the directory of another account");

// Creates the directory and those above it, unless the lowest one that exists belongs
// to another account. Root may own it: only an ordinary account that may write there,
// as in /tmp, gets further.
[[nodiscard]] result<void> create_own_directory(const fs::path& path) {
    constexpr std::uint32_t root = 0;
    constexpr unsigned own_only = 0700;
    std::vector<fs::path> missing;
    fs::path lowest = path;
    auto status = io::status_at({}, lowest.string(), io::follow::yes);
    while (not status and status.error() == std::errc::no_such_file_or_directory and
           lowest.has_relative_path()) {
        missing.push_back(lowest);
        lowest = lowest.parent_path();
        status = io::status_at({}, lowest.string(), io::follow::yes);
    }
    if (not status) return failure(status.error());
    if (status->user_id != ::geteuid() and status->user_id != root) return failure(not_of_this_account);
    for (const fs::path& each : missing | std::views::reverse) {
        const auto made =
            io::directory_handle::open({}, each.string(), io::mode::none, io::creation::if_needed, own_only);
        if (not made) return failure(made.error());
    }
    return {};
}

[[nodiscard]] result<void> create_key(const fs::path& path, secret_random_source& random) {
    if (const auto made = create_own_directory(path.parent_path()); not made) return made;
    auto directory = io::path_handle::open(path.parent_path().string());
    if (not directory) return failure(directory.error());
    const auto owner = io::status_of(*directory);
    if (not owner) return failure(owner.error());
    if (owner->user_id != ::geteuid()) return failure(not_of_this_account);
    auto file = io::file_handle::temp_file(*directory);  // 0600, removed when it closes
    if (not file) return failure(file.error());
    smb::auth::secret_bytes<32> fresh;
    random.fill(fresh.mutable_view().span());
    const auto wrote = file->write(io::io_request<io::const_bytes_type>{fresh.view().span(), 0});
    if (not wrote) return failure(wrote.error());
    if (const auto durable = file->barrier(); not durable) return failure(durable.error());
    // A complete file or none; an existing one is not replaced.
    return io::link(*file, *directory, path.filename().string());
}

[[nodiscard]] result<void> read_key(const std::string& path, mutable_bytes into) {
    auto file = io::file_handle::open({}, path, io::mode::read, io::creation::open_existing, io::caching::all,
                                      io::open_flag::no_follow);
    if (not file) return failure(file.error());
    const auto status = io::status_of(*file);
    if (not status) return failure(status.error());
    const bool is_ours = status->type == io::file_type::regular and status->user_id == ::geteuid() and
                         (status->permission_bits & 077U) == 0 and status->size_bytes == into.size();
    if (not is_ours) return failure({EPERM, "read the key of partial files"});
    const auto got = file->read(io::io_request<io::bytes_type>{into.span(), 0});
    if (not got) return failure(got.error());
    if (got->size() != into.size()) return failure({EIO, "read the key of partial files"});
    return {};
}

[[nodiscard]] result<void> obtain_key(const std::string& path, mutable_bytes into,
                                      secret_random_source& random) {
    result<void> read = read_key(path, into);
    for (unsigned i = 0; i != key_attempts_max and not read; ++i) {
        if (read.error() != std::errc::no_such_file_or_directory) return read;
        const auto created = create_key(path, random);
        if (not created and created.error() != std::errc::file_exists) return created;
        read = read_key(path, into);
    }
    return read;
}

constexpr std::size_t name_bytes = 16;

constexpr std::string_view name_prefix = ".sluice-";
constexpr std::string_view name_suffix = ".part";

[[nodiscard]] std::string name_with(bytes_view unguessable) {
    std::string name(name_prefix);
    for (const std::byte each : unguessable.span())
        name += fmt::format("{:02x}", std::to_integer<unsigned>(each));
    return name.append(name_suffix);
}

}  // namespace

partial_names::partial_names(secret_random_source& random, const std::string& path) : random_(random) {
    if (path.empty())
        problem_ = "no home directory (HOME is not set)";
    else if (const auto obtained = obtain_key(path, key_.mutable_view(), random); not obtained)
        problem_ = path + ": " + obtained.error().message();
    if (not problem_.empty()) random.fill(key_.mutable_view().span());
}

std::string partial_names::default_key_path() {
    const char* const configured = std::getenv("XDG_STATE_HOME");
    const char* const home = std::getenv("HOME");
    if (configured != nullptr and *configured == '/')
        return std::string(configured) + "/sluice/partial-files.key";
    if (home != nullptr and *home == '/') return std::string(home) + "/.local/state/sluice/partial-files.key";
    return {};
}

bool partial_names::is_one(std::string_view name) noexcept {
    if (not name.starts_with(name_prefix) or not name.ends_with(name_suffix)) return false;
    name.remove_prefix(name_prefix.size());
    name.remove_suffix(name_suffix.size());
    return name.size() == 2 * name_bytes and
           name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string partial_names::name_of(std::string_view target) const {
    const std::array parts{bytes_view(std::as_bytes(std::span("name", 4))),
                           bytes_view(std::as_bytes(std::span(target)))};
    const auto code = smb::auth::hmac_sha256(key_.view()).code(parts);
    return name_with(*code.view().first(name_bytes));
}

std::string partial_names::fresh_name() noexcept {
    std::array<std::byte, name_bytes> unguessable;
    random_.fill(unguessable);
    return name_with(unguessable);
}

partial_names::record partial_names::record_of(const source_version& version) const noexcept {
    const std::array numbers{le64(version.bytes), le64(version.created), le64(version.written),
                             le64(version.changed), le64(version.file_number)};
    // The numbers have a fixed length, so the text after them needs none.
    const std::array parts{bytes_view(std::as_bytes(std::span("version", 7))),
                           bytes_view(std::as_bytes(std::span(numbers))),
                           bytes_view(std::as_bytes(std::span(version.place)))};
    const auto code = smb::auth::hmac_sha256(key_.view()).code(parts);
    record made;
    std::ranges::copy(code.view().span(), made.begin());
    return made;
}

}  // namespace sluice::cli
