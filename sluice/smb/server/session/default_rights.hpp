#pragma once

#include <cstdint>
#include <utility>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

/// The parts of a file's status, and of a user, that decide what a file without a
/// stored descriptor grants.
struct default_rights_of {
    vfs::node_kind kind = vfs::node_kind::file;
    std::uint32_t user_id = 0;
    std::uint32_t group_id = 0;
    std::uint16_t permission_bits = 0;
    bool is_anonymous = false;

    [[nodiscard]] friend bool operator==(const default_rights_of&,
                                         const default_rights_of&) noexcept = default;
};

/// The rights that a file without a stored descriptor grants the user of a tree, as computed last.
/// Each open needs them, and they are the same for nearly all files of a share.
///
/// Monitor: `mutex_` guards the rest. Thread safety: any thread. Allocates: nothing itself.
class default_rights_cache {
public:
    /// Returns the cached rights, or those that `compute()` returns, and caches these. `compute`
    /// runs without the mutex.
    template <class Compute>
    [[nodiscard]] wire::access_mask of(const default_rights_of& which, Compute compute) {
        {
            const sluice::lock_guard lock(mutex_);
            if (is_known_ and which_ == which) return rights_;
        }
        const wire::access_mask rights = compute();
        const sluice::lock_guard lock(mutex_);
        which_ = which;
        rights_ = rights;
        is_known_ = true;
        return rights;
    }

private:
    ranked_mutex<lock_rank::leaf> mutex_;
    bool is_known_ SLUICE_GUARDED_BY(mutex_) = false;
    default_rights_of which_ SLUICE_GUARDED_BY(mutex_);
    wire::access_mask rights_ SLUICE_GUARDED_BY(mutex_) = wire::access_mask::none;
};

}  // namespace sluice::smb::server
