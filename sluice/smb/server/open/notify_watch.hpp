#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/server/core/event.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/fscc/fscc_notify.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/vfs/change_feed.hpp"

namespace sluice::smb::server {

/// What CHANGE_NOTIFY keeps with an open directory between requests ([MS-FSA] 2.1.5.11): the watch, which
/// changes count, those nobody has asked for yet, and who waits for the next. The first request decides what
/// is watched; later ones ask for more of it.
///
/// Requests are answered in the order they came, each with all the changes there are. Ending the watch ends
/// them with NOTIFY_CLEANUP. Thread safety: under the server's latch.
class notify_watch final : private vfs::change_listener {
public:
    struct interest {
        wire::completion_filter filter = wire::completion_filter::none;
        bool recursive = false;
        std::uint32_t bytes_max = UINT32_MAX;  // a reply may have; what does not fit is lost
    };
    /// The parts of a client's shares: the directories that are watched one by one for it, and the memory of
    /// its changes.
    struct counted {
        quota_hold directories;
        quota_hold change_bytes;
    };
    /// Begins to watch. Without `by`, changes are limited by their number alone. Errors: those of
    /// change_feed::watch; ENOSPC also if the client may not have more directories watched. Blocks: for the
    /// file system, if recursive.
    [[nodiscard]] static result<std::unique_ptr<notify_watch>> begin(vfs::change_feed& feed,
                                                                     vfs::node& directory,
                                                                     const interest& wanted, counted by = {});
    notify_watch(const notify_watch&) = delete;
    notify_watch& operator=(const notify_watch&) = delete;
    ~notify_watch();

    /// Has `told` set to success when it is its turn to take changes; to what ended the watch if that comes
    /// first. It lives until forget(), which passes the turn on, or the watch's end.
    void wait(event<wire::nt_status>& told);
    void forget(event<wire::nt_status>& told) noexcept;

    /// Moves all changes into a reply. Gives NOTIFY_ENUM_DIR if they do not fit, or some were lost: they are
    /// forgotten then, and the client is to look for itself.
    [[nodiscard]] wire::nt_status take(wire::notify_writer& into) noexcept;

    /// How long a reply may be at most, whatever later requests have room for.
    [[nodiscard]] std::uint32_t bytes_max() const noexcept { return bytes_max_; }

    /// Changes nobody has asked for yet.
    [[nodiscard]] std::size_t kept_changes() const noexcept { return changes_.size(); }

    /// The directory is to be removed: who waits, now or later, is told DELETE_PENDING.
    void end_for_removal() noexcept { end(wire::nt_status::delete_pending); }

private:
    struct kept_change {
        wire::notify_action action;
        std::string path;
    };

    notify_watch(const interest& wanted, counted by) noexcept
        : filter_(wanted.filter), bytes_max_(wanted.bytes_max), counted_(std::move(by)) {}

    void changed(const vfs::change& what) noexcept override;
    void overflowed() noexcept override;
    void ended() noexcept override { end_for_removal(); }
    [[nodiscard]] bool needs_no_changes() const noexcept override { return has_lost_some_; }
    [[nodiscard]] bool may_watch(std::size_t directories) noexcept override;

    void keep(wire::notify_action action, std::string_view path);
    void end(wire::nt_status why) noexcept;
    void wake_next() noexcept;
    [[nodiscard]] bool has_news() const noexcept { return has_lost_some_ or not changes_.empty(); }

    wire::completion_filter filter_;
    std::uint32_t bytes_max_;
    std::unique_ptr<vfs::change_watch> watch_;
    std::deque<kept_change> changes_;
    counted counted_;  // its bytes are those of `changes_`
    bool has_lost_some_ = false;
    wire::nt_status ended_by_ = wire::nt_status::success;
    std::vector<event<wire::nt_status>*> waiting_;
    event<wire::nt_status>* woken_ = nullptr;  // its turn, but it has not come to take yet
};

}  // namespace sluice::smb::server
