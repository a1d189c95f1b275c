#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "sluice/base/ensure.hpp"
#include "sluice/io/task/cancel_scope.hpp"
#include "sluice/smb/server/session/configuration.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"

namespace sluice::smb::server {

/// The change feed of a volume in progress: for all shares of the volume that are not withdrawn.
struct volume_feed {
    std::shared_ptr<vfs::volume> volume;
    io::cancel_scope scope{};
};

/// A volume under a name that clients connect to, a referral to shares of other servers, or IPC$,
/// which has named pipes only. The open files belong to the server: several shares may reach one
/// file.
/// Immutable, except for what is atomic, and the feed, which is for the first loop's thread.
class share {
public:
    /// `domain`: its number for reports of what the loops do (domain_names); 0 for none.
    explicit share(share_configuration configuration, std::uint32_t domain = 0) noexcept
        : configuration_(std::move(configuration)), domain_(domain) {}
    /// A snapshot of the volume of `present`, for the opens in it: its files count there.
    share(share_configuration configuration, std::shared_ptr<share> present) noexcept
        : configuration_(std::move(configuration)),
          domain_(present->domain()),
          has_live_feed_(false),
          present_(std::move(present)) {
        ENSURE(configuration_.snapshots == nullptr, "a snapshot has no snapshots");
    }
    /// IPC$.
    share() noexcept { configuration_.name = "IPC$"; }

    [[nodiscard]] const share_configuration& configuration() const noexcept { return configuration_; }
    [[nodiscard]] bool has_volume() const noexcept { return configuration_.volume != nullptr; }
    /// Returns whether it refers clients to other servers: it has no files.
    [[nodiscard]] bool is_referral() const noexcept { return not configuration_.referral.empty(); }
    [[nodiscard]] bool is_pipes() const noexcept { return not has_volume() and not is_referral(); }
    /// Only if it has one.
    [[nodiscard]] vfs::volume& volume() const noexcept {
        ENSURE(has_volume() and not is_referral(), "IPC$ and referrals have no volume");
        return *configuration_.volume;
    }

    static constexpr wire::access_mask read_only_access =
        wire::file_generic_read | wire::file_generic_execute;
    /// Returns the rights that the descriptor of the share would grant to everyone
    /// ([MS-SMB2] 3.3.1.6, Share.FileSecurity); some users have less.
    [[nodiscard]] wire::access_mask access_max() const noexcept {
        const bool is_read_only =
            has_volume() and (configuration_.is_read_only or volume().features().is_read_only);
        return is_read_only ? read_only_access : wire::file_all_access;
    }

    [[nodiscard]] std::uint32_t domain() const noexcept { return domain_; }

    /// After a reload without it, no client can connect to it any more. Opens stay, but are not
    /// notified of changes unless another share serves the volume.
    void withdraw() noexcept {
        is_withdrawn_.store(true, std::memory_order_relaxed);
        end_feed();
        feed.reset();
    }
    /// The feed of changes has ended: watches report nothing any more.
    void end_feed() noexcept { has_live_feed_.store(false, std::memory_order_seq_cst); }
    [[nodiscard]] bool has_live_feed() const noexcept {
        // seq_cst: the end of the feed finds an open that is live, or that open finds this.
        return has_live_feed_.load(std::memory_order_seq_cst);
    }
    // relaxed: a request that does not see it is as one that came before.
    [[nodiscard]] bool is_withdrawn() const noexcept { return is_withdrawn_.load(std::memory_order_relaxed); }

    /// Null if the volume has none, or the share is withdrawn. The last share to
    /// release it ends the feed.
    std::shared_ptr<volume_feed> feed;

    /// How many files are open through it: counted by the first and the last open of each.
    [[nodiscard]] std::size_t open_files() const noexcept {
        return open_files_.load(std::memory_order_relaxed);
    }
    // relaxed: a count, orders nothing.
    void count_open_file() noexcept {
        if (present_ != nullptr) return present_->count_open_file();
        open_files_.fetch_add(1, std::memory_order_relaxed);
    }
    void count_closed_file() noexcept {
        if (present_ != nullptr) return present_->count_closed_file();
        ENSURE(open_files_.fetch_sub(1, std::memory_order_relaxed) != 0, "a file is closed once");
    }

private:
    share_configuration configuration_;
    std::uint32_t domain_ = 0;
    std::atomic<bool> is_withdrawn_{false};
    std::atomic<bool> has_live_feed_{true};
    std::atomic<std::size_t> open_files_{0};
    const std::shared_ptr<share> present_{};  // null: it is not a snapshot
};

}  // namespace sluice::smb::server
