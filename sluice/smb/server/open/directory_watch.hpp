#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "sluice/smb/server/file/cached_directories.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/vfs/change_feed.hpp"

namespace sluice::smb::server {

/// The watch of a directory by an open that may have a lease of it: what other programs change
/// there becomes an event of cached_directories. Without it, the directory gets no lease.
///
/// Monitor: any thread; immutable, except for what is atomic. The feed calls it on one thread at a
/// time. begin() and the destructor call the file system. Lifetime: `in` outlives it.
class directory_watch final : public vfs::discardable, private vfs::change_listener {
public:
    /// Begins to watch. `counted`: the part of a client's share of such watches. Errors: EOPNOTSUPP
    /// if the feed does not report all changes; ENOSPC if the directory has too many watches; those
    /// of change_feed::watch. Blocks: for the file system.
    [[nodiscard]] static result<std::unique_ptr<directory_watch>> begin(cached_directories& in,
                                                                        vfs::change_feed& feed,
                                                                        vfs::node& directory,
                                                                        std::weak_ptr<open> by,
                                                                        quota_hold counted);
    directory_watch(const directory_watch&) = delete;
    directory_watch& operator=(const directory_watch&) = delete;
    ~directory_watch() override;

    /// Returns whether it reports changes. Once it does not, the directory gets no lease, and those
    /// that there were are broken.
    [[nodiscard]] bool is_active() const noexcept {
        return is_active_.load(std::memory_order_seq_cst);  // as share::has_live_feed()
    }
    /// The feed of the volume has ended, or the directory is not what it was.
    void deactivate() noexcept;

private:
    directory_watch(cached_directories& in, const vfs::file_key& directory, quota_hold counted) noexcept
        : in_(in), directory_(directory), counted_(std::move(counted)) {}

    void changed(const vfs::change& what) noexcept override;
    void overflowed() noexcept override { in_.record_loss(directory_); }
    void moved() noexcept override { in_.record_loss(directory_); }
    void ended() noexcept override { deactivate(); }

    cached_directories& in_;
    const vfs::file_key directory_;
    quota_hold counted_;
    bool is_added_ = false;
    std::atomic<bool> is_active_{true};
    std::unique_ptr<vfs::change_watch> watch_;
};

}  // namespace sluice::smb::server
