#include "sluice/cli/smb/partial_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/xattr.hpp"

namespace sluice::cli {
namespace {

// The proof of the version of a partial file, stored in an attribute of the file until it is
// complete.
constexpr const char* record_attribute = "user.sluice.origin";

// A leftover may be removed by its owner while it is opened here.
constexpr unsigned open_attempts_max = 4;

[[nodiscard]] bool has_record(const io::file_handle& file, const partial_names::record& wanted) noexcept {
    partial_names::record found{};
    const auto fetched = io::fetch_xattr(file, record_attribute, found);
    return fetched and fetched->size() == found.size() and found == wanted;
}

// The permissions of a new file; the mask belongs to the process, which has one thread here.
[[nodiscard]] unsigned usual_permissions() noexcept {
    const mode_t mask = ::umask(0);
    (void)::umask(mask);
    return 0666U & ~mask;
}

}  // namespace

// A file system without locks cannot exclude a second copy: then the file cannot be resumed.
result<void> partial_file::lock() noexcept {
    auto locked = file_.lock_range({}, io::lock_kind::exclusive, deadline::zero());
    if (locked) {
        lock_ = std::move(*locked);
        return {};
    }
    if (locked.error() != std::errc::timed_out) return {};
    is_kept_ = true;  // its owner removes it
    return failure({EBUSY, "lock the partial file: another copy to the same target is running"});
}

result<partial_file> partial_file::create(const place& where,
                                          const std::optional<partial_names::record>& version) noexcept {
    constexpr unsigned own_only = 0600;
    auto file =
        io::file_handle::open(where.directory, where.name, io::mode::write, io::creation::only_if_not_exist,
                              io::caching::all, io::open_flag::no_follow, own_only);
    if (not file) return failure({file.error().code(), "create the partial file"});
    partial_file made(where, std::move(*file));
    if (const auto locked = made.lock(); not locked) return failure(locked.error());
    // Between its creation and the lock, another process may have treated the file as a leftover.
    if (not made.has_name()) return failure({EEXIST, "create the partial file"});
    // A file system without attributes cannot prove the version.
    if (version and made.lock_.is_held())
        made.can_be_resumed_ = io::store_xattr(made.file_, record_attribute, *version).has_value();
    return made;
}

// Returns std::nullopt if the file was removed or completed by its owner before it was locked.
result<std::optional<partial_file>> partial_file::open_leftover(const place& where) noexcept {
    auto file =
        io::file_handle::open(where.directory, where.name, io::mode::write, io::creation::open_existing,
                              io::caching::all, io::open_flag::no_follow | io::open_flag::no_wait);
    if (not file and file.error() == std::errc::no_such_file_or_directory) return std::nullopt;
    // A link, a pipe, a directory, or a file of another account.
    constexpr error not_ours(EEXIST, "open the partial file, which is not a file of this account");
    if (not file) return failure(not_ours);
    const auto status = io::status_of(*file);
    if (not status) return failure(status.error());
    if (status->type != io::file_type::regular or status->user_id != ::geteuid() or status->links > 1)
        return failure(not_ours);
    partial_file found(where, std::move(*file));
    found.is_kept_ = true;  // until it is certain that no other process uses it
    if (const auto locked = found.lock(); not locked) return failure(locked.error());
    if (not found.lock_.is_held()) return failure({EEXIST, "lock the partial file"});
    if (not found.has_name()) return std::nullopt;  // it was renamed in the meantime
    found.is_kept_ = false;
    return std::optional<partial_file>(std::move(found));
}

result<partial_file> partial_file::open(place where, const std::optional<partial_names::record>& version,
                                        bool resumes) noexcept {
    for (unsigned i = 0; i != open_attempts_max; ++i) {
        auto created = create(where, version);
        if (created or created.error() != std::errc::file_exists) return created;
        auto opened = open_leftover(where);
        if (not opened) return failure(opened.error());
        if (not*opened) continue;
        partial_file& leftover = **opened;
        const auto length = leftover.file_.maximum_extent();
        if (resumes and version and length and has_record(leftover.file_, *version)) {
            leftover.bytes_before_ = *length;
            leftover.can_be_resumed_ = true;
            return std::move(leftover);
        }
        leftover.remove();
    }
    return failure({EBUSY, "create the partial file"});
}

partial_file::~partial_file() {
    if (file_.is_valid() and not is_kept_) remove();
}

bool partial_file::has_name() const noexcept {
    const auto named = io::status_at(where_.directory, where_.name);
    const auto open = io::status_of(file_);
    return named and open and named->is_same_inode(*open);
}

void partial_file::remove() noexcept {
    if (has_name()) (void)io::remove(where_.directory, where_.name);
    is_kept_ = true;
}

result<void> partial_file::start_over() noexcept {
    bytes_before_ = 0;
    if (const auto emptied = file_.truncate(0); not emptied) return failure(emptied.error());
    return {};
}

result<void> partial_file::finish(io::file_status::time_point modified) noexcept {
    (void)io::remove_xattr(file_, record_attribute);
    const auto replaced = target_status();
    const bool is_file = replaced and replaced->type == io::file_type::regular;
    const unsigned permissions = is_file ? replaced->permission_bits & 0777U : usual_permissions();
    // Some file systems have no permissions; then there are none to restrict.
    (void)::fchmod(file_.native().descriptor, static_cast<mode_t>(permissions));
    if (const auto timed = io::set_times(file_, {.accessed = {}, .modified = modified}); not timed)
        return failure(timed.error());
    if (const auto named = io::relink(file_, where_.directory, where_.target); not named)
        return failure(named.error());
    is_kept_ = true;
    return {};
}

}  // namespace sluice::cli
