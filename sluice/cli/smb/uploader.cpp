#include "sluice/cli/smb/uploader.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sluice/cli/message.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/io/task/awaitable.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;
using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

// Shorter files are sent from the beginning: WRITEs arrive in any order, so the last window of a
// partial file may have holes.
constexpr std::uint64_t resumed_bytes_min = transfer_window_bytes + resumable_bytes_min;

// The name of a leftover may be removed or reused while it is opened here.
constexpr unsigned open_attempts_max = 3;

// The wait for the server to detect that the connection of an earlier run ended.
constexpr auto release_pause_min = std::chrono::milliseconds(50);
constexpr auto release_within = std::chrono::seconds(10);

// While a file is partial, its creation time on the server proves its origin: bits of two records,
// as a time from 1970 to 2084, which every file system can store. The leading bits are those of the
// target, and show that the file is a leftover of this account; the others are those of the version
// of the source.
constexpr unsigned version_bits = 32;
constexpr unsigned target_bits = 23;

[[nodiscard]] std::uint64_t leading_bits(const partial_names::record& of, unsigned count) noexcept {
    return bytes_view(of).take_at<le64>(0)->value() >> (64 - count);
}
[[nodiscard]] smb::wire::filetime mark_of(const partial_names::record& target,
                                          const partial_names::record& version) noexcept {
    return smb::wire::filetime(smb::wire::filetime_ticks_at_unix_epoch +
                               (leading_bits(target, target_bits) << version_bits) +
                               leading_bits(version, version_bits));
}
[[nodiscard]] bool is_mark_of_target(smb::wire::filetime created, smb::wire::filetime mark) noexcept {
    constexpr auto base = smb::wire::filetime_ticks_at_unix_epoch;
    return created.ticks >= base and
           (created.ticks - base) >> version_bits == (mark.ticks - base) >> version_bits;
}

class uploader final : public file_copier {
public:
    uploader(remote_share& share, const copy_options& how, std::vector<given_file> files)
        : file_copier(share, how, total_of(files)), files_(std::move(files)) {}

private:
    [[nodiscard]] static std::uint64_t total_of(const std::vector<given_file>& files) noexcept {
        std::uint64_t bytes = 0;
        for (const given_file& each : files)
            bytes += each.bytes;
        return bytes;
    }

    [[nodiscard]] const std::string& path_of(std::size_t file) const noexcept override {
        return files_[file].to;
    }

    // The local file, as it was when the copy began.
    struct original {
        io::file_status status;
        smb::wire::filetime modified;
        smb::wire::filetime mark;
        [[nodiscard]] std::uint64_t bytes() const noexcept { return status.size_bytes; }
        [[nodiscard]] bool can_be_resumed() const noexcept { return bytes() > resumed_bytes_min; }
    };

    // The partial file on the server. It is kept for --resume only if the connection was lost.
    struct partial {
        std::unique_ptr<remote_file> file;
        std::uint64_t bytes_before = 0;
        bool is_marked = false;  // under the usual name, so that a later run finds it
    };

    [[nodiscard]] std::string share_path_of(const given_file& file) const {
        return share_.url().host + '/' + share_.url().share + '/' + file.to;
    }

    [[nodiscard]] original original_of(const given_file& file, const io::file_status& status) const {
        const std::string place = fs::absolute(file.from).lexically_normal().string();
        const auto ticks = [](io::file_status::time_point time) {
            return static_cast<std::uint64_t>(time.time_since_epoch().count());
        };
        const auto record = names_.record_of({.place = place,
                                              .bytes = status.size_bytes,
                                              .created = status.device,
                                              .written = ticks(status.modified),
                                              .changed = ticks(status.changed),
                                              .file_number = status.inode});
        return {.status = status,
                .modified = smb::wire::filetime_of(status.modified),
                .mark = mark_of(names_.record_of({.place = share_path_of(file)}), record)};
    }

    [[nodiscard]] io::task<copy_error> copy(std::size_t number) noexcept override {
        const given_file& file = files_[number];
        auto source = file.root != nullptr ? io::file_handle::open(*file.root, file.below)
                                           : io::file_handle::open({}, file.from.string());
        if (not source) co_return reason_of(source.error());
        const auto status = io::status_of(*source);
        if (not status) co_return reason_of(status.error());
        if (status->type != io::file_type::regular)
            co_return file.from.string() + ": it changed, and is not a regular file any more; copy it again";
        const original of = original_of(file, *status);
        if (how_.resumes) {
            io::task<outcome<file_status>> asking = share_.tree().status(file.to);
            const auto there = co_await std::move(asking);
            if (there and there->end_of_file_bytes == of.bytes() and there->last_write_time == of.modified) {
                progress_.skip(of.bytes());
                co_return std::nullopt;
            }
        }
        progress_.name(file.to);
        io::task<outcome<partial>> opening = open_partial(file, of);
        auto opened = co_await std::move(opening);
        if (not opened) co_return opened.error().message();
        remote_file& remote = *opened->file;
        bool keeps = false;
        io::task<copy_error> sending = send(file, *source, *opened, of, keeps);
        copy_error met = co_await std::move(sending);
        if (met and not keeps) {
            io::task<outcome<void>> removing = remote.delete_on_close();
            (void)co_await std::move(removing);  // best effort: the copy has failed in any case
        }
        io::task<outcome<file_status>> close_task = remote.co_close();
        const auto closed = co_await std::move(close_task);
        if (not met and not closed) met = closed.error().message();
        if (not met and *closed != file_status{} and closed->end_of_file_bytes != of.bytes())
            met = wrong_size(*closed, of);
        co_return met;
    }

    [[nodiscard]] static open_options exclusively(smb::wire::create_disposition disposition) noexcept {
        return {.access = smb::wire::file_generic_read | smb::wire::file_generic_write |
                          smb::wire::access_mask::delete_object,
                .shares = smb::wire::share_access::none,
                .disposition = disposition,
                .options = smb::wire::create_options::non_directory_file |
                           smb::wire::create_options::open_reparse_point};
    }

    [[nodiscard]] static std::string wrong_size(const file_status& there, const original& of) {
        return fmt::format("the file has {} bytes on the server instead of {}; copy it again",
                           there.end_of_file_bytes, of.bytes());
    }

    // Creates a new file, or opens a leftover of this account of the same version. Never follows a
    // link, and never changes or removes any other file.
    io::task<outcome<partial>> open_partial(const given_file& file, const original& of) noexcept {
        const std::size_t slash = file.to.rfind('/');
        const std::string directory = slash == std::string::npos ? std::string() : file.to.substr(0, slash);
        io::task<outcome<partial>> opening =
            open_usual(joined_path(directory, names_.name_of(share_path_of(file))), of);
        auto usual = co_await std::move(opening);
        if (usual or usual.error().is_of_connection()) co_return std::move(usual);
        const std::string name = joined_path(directory, names_.fresh_name());
        io::task<outcome<not_null_ptr<remote_file>>> creating =
            share_.tree().open(name, exclusively(smb::wire::create_disposition::create));
        auto created = co_await std::move(creating);
        if (not created) co_return failed(created.error());
        co_return partial{.file = created->release()};
    }

    // Opens it under the name that a later run finds again. Fails if a file of another origin has
    // it.
    io::task<outcome<partial>> open_usual(std::string name, const original& of) noexcept {
        for (unsigned i = 0;; ++i) {
            io::task<outcome<not_null_ptr<remote_file>>> creating =
                share_.tree().open(name, exclusively(smb::wire::create_disposition::create));
            auto created = co_await std::move(creating);
            if (created) co_return partial{.file = created->release(), .is_marked = true};
            const bool exists = created.error().status() == nt_status::object_name_collision;
            if (not exists or i + 1 == open_attempts_max) co_return failed(created.error());
            io::task<outcome<not_null_ptr<remote_file>>> opening = open_released(name);
            auto opened = co_await std::move(opening);
            if (not opened and opened.error().status() == nt_status::object_name_not_found) continue;
            if (not opened) co_return failed(opened.error());
            partial found{.file = opened->release(), .is_marked = true};
            if (how_.resumes and is_part_of(*found.file, of)) {
                found.bytes_before = bytes_present(*found.file);
                co_return found;
            }
            const bool is_ours = is_leftover(*found.file, of);
            if (is_ours) {
                io::task<outcome<void>> removing = found.file->delete_on_close();
                (void)co_await std::move(removing);
            }
            io::task<outcome<file_status>> close_task = found.file->co_close();
            (void)co_await std::move(close_task);
            if (not is_ours) co_return failed(created.error());
        }
    }

    // Opens a leftover. With --resume, waits while the server still has it open for a lost
    // connection.
    io::task<outcome<not_null_ptr<remote_file>>> open_released(std::string name) noexcept {
        auto pause = release_pause_min;
        auto waited = std::chrono::milliseconds(0);
        for (;;) {
            io::task<outcome<not_null_ptr<remote_file>>> opening =
                share_.tree().open(name, exclusively(smb::wire::create_disposition::open));
            auto opened = co_await std::move(opening);
            const bool is_held = not opened and opened.error().status() == nt_status::sharing_violation;
            if (not is_held or not how_.resumes or waited >= release_within) co_return std::move(opened);
            (void)co_await io::co_sleep(share_.loop(), pause);
            waited += pause;
            pause *= 2;
        }
    }

    // All bytes of a partial file except those of the last window are certain to be written.
    [[nodiscard]] static std::uint64_t bytes_present(const remote_file& partial) noexcept {
        return partial.status().end_of_file_bytes - transfer_window_bytes;
    }
    [[nodiscard]] static bool is_part_of(const remote_file& leftover, const original& of) noexcept {
        const file_status& there = leftover.status();
        return not is_link(there) and there.creation_time == of.mark and
               there.end_of_file_bytes > resumed_bytes_min and there.end_of_file_bytes <= of.bytes();
    }

    // A file of this program is empty until it is marked, and complete with the times of the source
    // before it is renamed.
    [[nodiscard]] static bool is_leftover(const remote_file& found, const original& of) noexcept {
        const file_status& there = found.status();
        const bool is_complete = there.end_of_file_bytes == of.bytes() and
                                 there.creation_time == of.modified and there.last_write_time == of.modified;
        return not is_link(there) and (there.end_of_file_bytes == 0 or is_complete or
                                       is_mark_of_target(there.creation_time, of.mark));
    }

    // Returns the start of the copy: after the bytes of an earlier run, if the server still has
    // them.
    io::task<transferred<std::uint64_t>> begin(io::file_handle& source, partial& to,
                                               const original& of) noexcept {
        if (to.bytes_before != 0) {
            io::task<transferred<bool>> proving =
                has_same_tail(*to.file, source, to.bytes_before, of.bytes());
            const auto is_same = co_await std::move(proving);
            if (not is_same) co_return std::unexpected(is_same.error());
            if (*is_same) co_return to.bytes_before;
            io::task<outcome<void>> emptying = to.file->set_size(0);
            const auto emptied = co_await std::move(emptying);
            if (not emptied)
                co_return std::unexpected(transfer_error{.remote = emptied.error(), .local = {}});
        } else if (to.is_marked) {
            io::task<outcome<void>> marking = to.file->set_times({.created = of.mark});
            (void)co_await std::move(marking);  // if the server cannot store the mark, a later run
                                                // starts over
        }
        co_return std::uint64_t{0};
    }

    // Sends the bytes; then gives the file its name and its times. `keeps` is set if
    // --resume can continue.
    io::task<copy_error> send(const given_file& file, io::file_handle& source, partial& to,
                              const original& of, bool& keeps) noexcept {
        io::task<transferred<std::uint64_t>> uploading = send_bytes(source, to, of);
        const auto end = co_await std::move(uploading);
        if (not end) {
            keeps = to.is_marked and of.can_be_resumed() and (how_.resumes or end.error().is_of_connection());
            co_return message_of(end.error());
        }
        const auto now = io::status_of(source);
        if (not now) co_return reason_of(now.error());
        const bool is_same = *end == of.bytes() and now->size_bytes == of.bytes() and
                             now->modified == of.status.modified and now->changed == of.status.changed;
        if (not is_same) co_return file.from.string() + ": changed during the copy; copy it again";
        if (how_.verifies) {
            io::task<copy_error> comparing = compare(*to.file, source, 0, *end);
            if (auto difference = co_await std::move(comparing)) co_return difference;
        }
        const file_times times{.created = to.is_marked ? of.modified : smb::wire::filetime{},
                               .written = of.modified};
        io::task<outcome<void>> timing = to.file->set_times(times);
        const auto timed = co_await std::move(timing);
        if (not timed) co_return timed.error().message();
        // The old file is replaced only by a complete new one, which is on the server's disk.
        io::task<outcome<void>> flushing = to.file->co_flush();
        const auto flushed = co_await std::move(flushing);
        if (not flushed) co_return flushed.error().message();
        io::task<outcome<file_status>> asking = to.file->co_status();
        const auto there = co_await std::move(asking);
        if (not there) co_return there.error().message();
        if (there->end_of_file_bytes != of.bytes()) co_return wrong_size(*there, of);
        io::task<outcome<void>> renaming = to.file->rename(file.to, file.may_replace);
        const auto renamed = co_await std::move(renaming);
        if (not renamed) co_return renamed.error().message();
        co_return std::nullopt;
    }

    io::task<transferred<std::uint64_t>> send_bytes(io::file_handle& source, partial& to,
                                                    const original& of) noexcept {
        io::task<transferred<std::uint64_t>> beginning = begin(source, to, of);
        const auto from = co_await std::move(beginning);
        if (not from) co_return from;
        progress_.skip(*from);
        // A source that grows is not followed: send() detects that it changed.
        const byte_source give = [&](mutable_bytes into, std::uint64_t offset) -> result<std::size_t> {
            const auto left = std::min<std::uint64_t>(into.size(), of.bytes() - std::min(offset, of.bytes()));
            if (left == 0) return std::size_t{0};
            const auto got = source.read(
                io::io_request<io::bytes_type>{into.first(static_cast<std::size_t>(left))->span(), offset});
            if (not got) return failure(got.error());
            progress_.add(got->size());
            return got->size();
        };
        io::task<transferred<std::uint64_t>> uploading = upload(*to.file, *from, of.bytes(), give);
        co_return co_await std::move(uploading);
    }

    std::vector<given_file> files_;
};

}  // namespace

std::unique_ptr<file_copier> create_uploader(remote_share& share, const copy_options& how,
                                             std::vector<given_file> files) {
    return std::make_unique<uploader>(share, how, std::move(files));
}

std::optional<client_error> create_if_needed(remote_share& share, const std::string& path) {
    if (path.empty()) return std::nullopt;
    const auto made = share.run(share.tree().create_directory(path));
    if (made or made.error().status() == nt_status::object_name_collision) return std::nullopt;
    return made.error();
}

void ensure_directory(remote_share& share, const std::string& path) {
    if (const auto met = create_if_needed(share, path)) share.fail(path, met->message());
}

}  // namespace sluice::cli
