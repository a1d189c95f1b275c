#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

namespace sluice::smb::server {

struct tree;

/// The snapshots that are open through a tree connection: one for each time, as long as an open or
/// a request uses it.
///
/// Invariant: at most one that is in use for each time.
/// Monitor: any thread; `mutex_` guards the rest. Complexity: linear in the snapshots in use, which
/// limit::snapshots bounds for each client.
class past_trees {
public:
    past_trees() = default;
    past_trees(const past_trees&) = delete;
    past_trees& operator=(const past_trees&) = delete;

    /// Returns the tree of a time; null if none is in use.
    [[nodiscard]] std::shared_ptr<tree> find(vfs::snapshot_time when) const noexcept {
        const lock_guard held(mutex_);
        return find_held(when);
    }
    /// Adds the tree of a time, and returns it, or the one that another request has added before.
    /// Allocates: an entry.
    [[nodiscard]] std::shared_ptr<tree> keep(vfs::snapshot_time when, const std::shared_ptr<tree>& fresh) {
        ENSURE(fresh != nullptr, "a tree is kept");
        const lock_guard held(mutex_);
        if (std::shared_ptr<tree> known = find_held(when)) return known;
        std::erase_if(entries_, [](const entry& each) { return each.second.expired(); });
        entries_.emplace_back(when, fresh);
        return fresh;
    }

private:
    using entry = std::pair<vfs::snapshot_time, std::weak_ptr<tree>>;

    [[nodiscard]] std::shared_ptr<tree> find_held(vfs::snapshot_time when) const noexcept
        SLUICE_REQUIRES(mutex_) {
        for (const entry& each : entries_)
            if (each.first == when)
                if (std::shared_ptr<tree> known = each.second.lock()) return known;
        return nullptr;
    }

    mutable ranked_mutex<lock_rank::leaf> mutex_;
    std::vector<entry> entries_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
