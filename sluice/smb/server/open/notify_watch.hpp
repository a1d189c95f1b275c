#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/fscc/fscc_notify.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/vfs/change_feed.hpp"

namespace sluice::smb::server {

/// The state that CHANGE_NOTIFY keeps with an open directory between requests ([MS-FSA] 2.1.5.11):
/// the watch, the changes that count, the queued changes, and the requests that wait for the next
/// one. The first request determines what is watched; later ones ask for more of its changes.
///
/// Requests are answered in order of arrival, each with all queued changes. Ending the watch ends
/// them with NOTIFY_CLEANUP.
///
/// Invariants:
///   1. A waiter that has been woken is in the list no more; until it calls
///      forget(), no other is woken.
///   2. `change_bytes_` has the bytes of `changes_`, if they are counted.
///   3. One thread adds changes: up to their bound, and none while some are lost.
/// Monitor: any thread; `mutex_` guards changes and waiters. Quotas are taken before it is locked,
/// and released after it is unlocked. The feed calls it on one thread at a time. begin() and the
/// destructor call the file system. Lifetime: `notified` of wait() until forget(), or the end.
class notify_watch final : public vfs::discardable, private vfs::change_listener {
public:
    struct interest {
        wire::completion_filter filter = wire::completion_filter::none;
        bool recursive = false;
        std::uint32_t bytes_max = UINT32_MAX;  // in a reply; changes that do not fit are lost
    };
    /// The parts of a client's shares: the directories that are watched one by one for it, and the
    /// memory of its changes.
    struct counted {
        quota_hold directories;
        quota_hold change_bytes;
    };
    /// Begins to watch. Without `by`, changes are limited by their number alone. Errors: those of
    /// change_feed::watch; ENOSPC also if the client may not have more directories watched. Blocks:
    /// for the file system, if recursive.
    [[nodiscard]] static result<std::unique_ptr<notify_watch>> begin(vfs::change_feed& feed,
                                                                     vfs::node& directory,
                                                                     const interest& wanted, counted by = {});
    notify_watch(const notify_watch&) = delete;
    notify_watch& operator=(const notify_watch&) = delete;
    ~notify_watch() override;

    /// Has `notified` set to success when it is its turn to take changes; to what ended the watch
    /// if that comes first. It lives until forget(), which passes the turn on, or the watch's end.
    void wait(one_shot_event<wire::nt_status>& notified);
    void forget(one_shot_event<wire::nt_status>& notified) noexcept;

    /// Moves all changes into a reply. Gives NOTIFY_ENUM_DIR if they do not fit, or some were lost:
    /// they are forgotten then, and the client is to look for itself.
    [[nodiscard]] wire::nt_status take(wire::notify_writer& into) noexcept;

    /// How long a reply may be at most, whatever later requests have room for. Immutable.
    [[nodiscard]] std::uint32_t bytes_max() const noexcept { return bytes_max_; }

    /// Returns the number of queued changes.
    [[nodiscard]] std::size_t kept_changes() const noexcept {
        const lock_guard held(mutex_);
        return changes_.size();
    }

    /// The open has ended: completes waiting requests with NOTIFY_CLEANUP.
    void end_with_open() noexcept { end(wire::nt_status::notify_cleanup); }
    /// The directory will be removed: requests that wait, now or later, get DELETE_PENDING.
    void end_for_removal() noexcept { end(wire::nt_status::delete_pending); }

private:
    struct kept_change {
        wire::notify_action action;
        std::string path;
    };

    notify_watch(const interest& wanted, counted by) noexcept
        : filter_(wanted.filter),
          bytes_max_(wanted.bytes_max),
          by_(by.directories.client()),
          directories_(std::move(by.directories)),
          change_bytes_(std::move(by.change_bytes)) {}

    void changed(const vfs::change& what) noexcept override;
    void overflowed() noexcept override;
    void ended() noexcept override { end_for_removal(); }
    [[nodiscard]] bool needs_no_changes() const noexcept override {
        const lock_guard held(mutex_);
        return has_lost_some_;
    }
    [[nodiscard]] bool may_watch(std::size_t directories) noexcept override;

    // Destroyed after the mutex is unlocked.
    struct forgotten {
        std::deque<kept_change> changes;
        quota_hold bytes;
    };

    void keep(wire::notify_action action, std::string_view path);
    // Whether a change is not to be added: it says nothing new, or some were lost already.
    [[nodiscard]] bool is_known(wire::notify_action action, const std::string& smb_path) const noexcept
        SLUICE_REQUIRES(mutex_);
    [[nodiscard]] forgotten forget_changes() noexcept SLUICE_REQUIRES(mutex_);
    void lose() noexcept;
    void end(wire::nt_status why) noexcept;
    void wake_next() noexcept;
    void wake_next(event_wakes<wire::nt_status>& woken) noexcept SLUICE_REQUIRES(mutex_);

    const wire::completion_filter filter_;
    const std::uint32_t bytes_max_;
    std::unique_ptr<vfs::change_watch> watch_;
    const client_reference by_;  // null: not counted
    quota_hold directories_;     // the feed's thread, and begin()
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    std::deque<kept_change> changes_ SLUICE_GUARDED_BY(mutex_);
    quota_hold change_bytes_ SLUICE_GUARDED_BY(mutex_);
    bool has_lost_some_ SLUICE_GUARDED_BY(mutex_) = false;
    wire::nt_status ended_by_ SLUICE_GUARDED_BY(mutex_) = wire::nt_status::success;
    std::vector<one_shot_event<wire::nt_status>*> waiting_ SLUICE_GUARDED_BY(mutex_);
    // Its turn, but it has not come to take yet.
    one_shot_event<wire::nt_status>* woken_ SLUICE_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace sluice::smb::server
