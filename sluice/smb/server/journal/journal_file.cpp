#include "sluice/smb/server/journal/journal_file.hpp"

#include <array>
#include <charconv>
#include <new>
#include <string_view>

#include "sluice/io/file/mapped_file_handle.hpp"
#include "sluice/io/path/directory_handle.hpp"
#include "sluice/smb/server/journal/journal_format.hpp"
#include "sluice/smb/server/journal/journal_version.hpp"

namespace sluice::smb::server {

namespace {

namespace format = journal_format;

constexpr std::uint64_t bytes_max =
    format::header_bytes + std::uint64_t{handle_journal::slots_max} * format::slot_bytes;
constexpr std::array<std::byte, std::size_t{64} << 10> zeros{};

/// A mapped file, locked as long as it is open.
class mapped_journal final : public journal_storage {
public:
    mapped_journal(io::directory_handle directory, std::string path, std::string name,
                   io::mapped_file_handle file, io::extent_guard fence) noexcept
        : directory_(std::move(directory)),
          path_(std::move(path)),
          name_(std::move(name)),
          file_(std::move(file)),
          fence_(std::move(fence)) {
        ENSURE(file_.is_valid() and fence_.is_held());
    }

    [[nodiscard]] std::string name() const override { return path_; }
    [[nodiscard]] mutable_bytes bytes() const noexcept override {
        return {file_.address(), static_cast<std::size_t>(file_.mapped_length())};
    }

    [[nodiscard]] result<void> extend(std::uint64_t length) noexcept override {
        if (length > file_.reserved_bytes()) return failure({EFBIG, "extend a journal", file_.descriptor()});
        // Written, and not only lengthened: a store into a page without memory would be a SIGBUS.
        for (std::uint64_t end = file_.mapped_length(); end < length;) {
            const auto piece = std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), length - end));
            const auto written = file_.write({piece, end});
            if (not written) return failure(written.error());
            ENSURE(written->size() <= piece.size());
            if (written->empty()) return failure({ENOSPC, "extend a journal", file_.descriptor()});
            end += written->size();
        }
        return {};
    }

    [[nodiscard]] result<void> empty() noexcept override {
        const auto done = file_.truncate(0);
        if (not done) return failure(done.error());
        return {};
    }

    [[nodiscard]] result<void> copy_aside() noexcept override {
        auto copy =
            io::file_handle::open(directory_, name_ + ".set-aside", io::mode::write, io::creation::always_new,
                                  io::caching::all, io::open_flag::no_follow, 0600);
        if (not copy) return failure(copy.error());
        const auto done = file_.clone_extents_to(*copy);
        if (not done) return failure(done.error());
        return {};
    }

private:
    const io::directory_handle directory_;
    const std::string path_;
    const std::string name_;       // in the directory
    io::mapped_file_handle file_;  // before its lock
    io::extent_guard fence_;
};

error at(const error& why, std::string_view path) noexcept {
    return error::with_path(why.code(), why.operation(), path);
}

/// Returns whether only the server's account can use what `status` describes.
bool is_private(const io::file_status& status, io::file_type type, std::uint16_t mode,
                std::uint32_t user_id) noexcept {
    return status.type == type and status.permission_bits == mode and status.user_id == user_id;
}

result<io::directory_handle> open_state_directory(const journal_place& place) noexcept {
    const std::string& path = place.directory;
    // A link is not followed: the check below would be of what it leads to.
    auto before = io::status_at({}, path);
    if (not before and before.error() == std::errc::no_such_file_or_directory) {
        const auto made =
            io::directory_handle::open({}, path, io::mode::read, io::creation::only_if_not_exist, 0700);
        if (not made and made.error() != std::errc::file_exists) return failure(at(made.error(), path));
        before = io::status_at({}, path);
    }
    if (not before) return failure(at(before.error(), path));
    if (not is_private(*before, io::file_type::directory, 0700, place.user_id))
        return failure(error::with_path(EPERM, "use a state directory that is not private", path));
    auto opened = io::directory_handle::open({}, path);
    if (not opened) return failure(at(opened.error(), path));
    const auto status = io::status_of(*opened);
    if (not status) return failure(at(status.error(), path));
    if (not status->is_same_inode(*before))
        return failure(error::with_path(EPERM, "use a state directory that is being replaced", path));
    return opened;
}

std::string in_hexadecimal(std::uint64_t number) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
    ENSURE(end.ec == std::errc());
    return {digits.data(), end.ptr};
}

/// Returns the error of a server that is excluded, with the process that has the file.
error held_error(io::file_handle& file, const std::string& path) {
    le32 process;
    const auto read =
        file.read({std::as_writable_bytes(std::span(&process, 1)), offsetof(format::header, process_id)});
    const bool is_known = read and read->size() == sizeof process and process.value() != 0;
    const std::string holder =
        is_known ? "process " + std::to_string(process.value()) : std::string("another process");
    return error::with_path(EBUSY, "open a handle journal", path + " (held by " + holder + ")");
}

result<std::unique_ptr<journal_storage>> open_in(io::directory_handle directory, const journal_place& place,
                                                 const std::string& name, deadline within) {
    const std::string path = place.directory + "/" + name;
    auto file = io::file_handle::open(directory, name, io::mode::write, io::creation::if_needed,
                                      io::caching::all, io::open_flag::no_follow, 0600);
    if (not file) return failure(at(file.error(), path));
    auto fence = file->lock_range({}, io::lock_kind::exclusive, within);
    if (not fence and fence.error() == std::errc::timed_out) return failure(held_error(*file, path));
    if (not fence) return failure(at(fence.error(), path));
    const auto status = io::status_of(*file);
    if (not status) return failure(at(status.error(), path));
    if (status->links == 0) return failure(error::with_path(ESTALE, "open a handle journal", path));
    if (not is_private(*status, io::file_type::regular, 0600, place.user_id) or status->links != 1)
        return failure(error::with_path(EPERM, "use a handle journal that is not private", path));
    if (status->size_bytes > bytes_max)
        return failure(error::with_path(EFBIG, "open a handle journal", path));
    auto mapped = io::mapped_file_handle::map(std::move(*file), bytes_max);
    if (not mapped) return failure(at(mapped.error(), path));
    return std::make_unique<mapped_journal>(std::move(directory), path, name, std::move(*mapped),
                                            std::move(*fence));
}

}  // namespace

result<std::unique_ptr<journal_storage>> open_journal_file(const journal_place& place,
                                                           const journal_identity& identity,
                                                           deadline within) noexcept {
    auto directory = open_state_directory(place);
    if (not directory) return failure(directory.error());
    return open_in(std::move(*directory), place, journal_name(identity.device, identity.inode), within);
}

result<std::optional<std::uint32_t>> later_version_in_file(const journal_place& place,
                                                           const std::string& name) noexcept {
    const auto directory = open_state_directory(place);
    if (not directory) return failure(directory.error());
    auto file = io::file_handle::open(*directory, name, io::mode::read, io::creation::open_existing,
                                      io::caching::all, io::open_flag::no_follow);
    if (not file) return failure(file.error());
    std::array<std::byte, format::header_bytes> start{};
    const auto read = file->read({start, 0});
    if (not read) return failure(read.error());
    return later_version_in(bytes_view(start.data(), read->size()));
}

std::string journal_name(std::uint64_t device, std::uint64_t inode) {
    return "handles-" + in_hexadecimal(device) + "-" + in_hexadecimal(inode);
}

result<std::array<std::byte, 16>> present_boot() noexcept {
    constexpr const char* path = "/proc/sys/kernel/random/boot_id";
    const auto invalid = [] { return failure(error::with_path(EIO, "read the boot ID", path)); };
    auto file = io::file_handle::open({}, path);
    if (not file) return failure(file.error());
    std::array<char, 36> text{};  // a UUID
    const auto read = file->read({std::as_writable_bytes(std::span(text)), 0});
    if (not read) return failure(at(read.error(), path));
    if (read->size() != text.size()) return invalid();
    std::array<std::byte, 16> id{};
    const char* next = text.data();
    for (std::byte& each : id) {
        if (*next == '-') ++next;
        unsigned value = 0;
        if (next + 2 > text.data() + text.size() or
            std::from_chars(next, next + 2, value, 16).ptr != next + 2)
            return invalid();
        each = static_cast<std::byte>(value);
        next += 2;
    }
    return id;
}

}  // namespace sluice::smb::server
