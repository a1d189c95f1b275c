#pragma once

#include <atomic>
#include <optional>
#include <unordered_map>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

/// The change times of open files that differ from those of their file systems: clients have set or
/// frozen them, or a rename has not changed them yet. The server shows them for as long as the file
/// is open and the file system's does not change.
///
/// Monitor: `mutex_` guards the rest; `count_` is atomic, for callers that find none. Thread
/// safety: any thread. Allocates: a node for each time. Complexity: constant.
class set_change_times {
public:
    set_change_times() noexcept = default;
    set_change_times(const set_change_times&) = delete;
    set_change_times& operator=(const set_change_times&) = delete;

    /// Returns whether there is none. relaxed: a caller that does not see a set() shows the host's
    /// time, as if it had come before.
    [[nodiscard]] bool is_empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
    /// A change time that is shown in place of the file system's.
    struct shown_time {
        vfs::time_point shown{};
        vfs::time_point of_host{};
        const void* until_end_of =
            nullptr;  // the open with which it ends; null: with the last open of the file
    };
    /// Shows a time as the change time of a file until the file system's is not `of_host` any more.
    void set(const vfs::file_key& of, const shown_time& time) {
        const sluice::lock_guard lock(mutex_);
        times_.insert_or_assign(of, time);
        publish_count();
    }
    /// Returns the time that is shown for a file; std::nullopt if it is the file system's.
    [[nodiscard]] std::optional<shown_time> find(const vfs::file_key& of) const noexcept {
        if (is_empty()) return std::nullopt;
        const sluice::lock_guard lock(mutex_);
        const auto found = times_.find(of);
        return found == times_.end() ? std::nullopt : std::optional(found->second);
    }
    /// An open has ended: a time that is shown until then ends.
    void end_with(const void* open, const vfs::file_key& of) noexcept {
        if (is_empty()) return;
        const sluice::lock_guard lock(mutex_);
        const auto found = times_.find(of);
        if (found == times_.end() or found->second.until_end_of != open) return;
        times_.erase(found);
        publish_count();
    }
    /// Puts the set time of a file, if it has one, into its status.
    void show_in(vfs::metadata& status, const vfs::file_key& of) noexcept {
        if (is_empty()) return;
        const sluice::lock_guard lock(mutex_);
        const auto found = times_.find(of);
        if (found == times_.end()) return;
        if (status.changed == found->second.of_host) {
            status.changed = found->second.shown;
            return;
        }
        times_.erase(found);
        publish_count();
    }
    /// The file has another key: its set time, if it has one, goes along.
    void move(const vfs::file_key& from, const vfs::file_key& to) {
        if (is_empty()) return;
        const sluice::lock_guard lock(mutex_);
        const auto found = times_.find(from);
        if (found == times_.end()) return;
        times_.insert_or_assign(to, found->second);
        times_.erase(from);
        publish_count();
    }
    /// The file is not open any more.
    void forget(const vfs::file_key& of) noexcept {
        if (is_empty()) return;
        const sluice::lock_guard lock(mutex_);
        times_.erase(of);
        publish_count();
    }

private:
    void publish_count() noexcept SLUICE_REQUIRES(mutex_) {
        count_.store(times_.size(), std::memory_order_relaxed);
    }

    mutable ranked_mutex<lock_rank::memory> mutex_;  // the file table calls it under its own
    std::unordered_map<vfs::file_key, shown_time> times_ SLUICE_GUARDED_BY(mutex_);
    std::atomic<std::size_t> count_{0};
};

}  // namespace sluice::smb::server
