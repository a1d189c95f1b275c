#pragma once

#include <atomic>
#include <unordered_map>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

/// The change times that clients have set of open files. Hosts do not let programs set a change
/// time, so the server shows it instead of the host's, for as long as the file is open and the
/// host's does not change.
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
    /// Shows `shown` as the change time of a file until the host's is not `of_host` any more.
    void set(const vfs::file_key& of, vfs::time_point shown, vfs::time_point of_host) {
        const sluice::lock_guard lock(mutex_);
        times_.insert_or_assign(of, entry{.shown = shown, .of_host = of_host});
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
    struct entry {
        vfs::time_point shown{};
        vfs::time_point of_host{};
    };
    void publish_count() noexcept SLUICE_REQUIRES(mutex_) {
        count_.store(times_.size(), std::memory_order_relaxed);
    }

    ranked_mutex<lock_rank::memory> mutex_;  // the file table calls it under its own
    std::unordered_map<vfs::file_key, entry> times_ SLUICE_GUARDED_BY(mutex_);
    std::atomic<std::size_t> count_{0};
};

}  // namespace sluice::smb::server
