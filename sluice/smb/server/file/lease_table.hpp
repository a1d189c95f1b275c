#pragma once

#include <map>
#include <memory>
#include <utility>

#include "sluice/base/recycled_memory.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/core/shared_memory.hpp"
#include "sluice/smb/server/file/lease.hpp"

namespace sluice::smb::server {

/// The leases of all clients, by client and key ([MS-SMB2] 3.3.1.11, GlobalLeaseTableList). Oplocks
/// are not in it: their opens have them.
/// Monitor: any thread; `mutex_` guards the map, and the mutex of its file each lease. What find()
/// returns may have ended. Lifetime: outlives its leases (ENSURE).
class lease_table {
public:
    lease_table() noexcept = default;
    lease_table(const lease_table&) = delete;
    lease_table& operator=(const lease_table&) = delete;

    /// Null if there is none. Complexity: O(log n) in leases.
    [[nodiscard]] std::shared_ptr<lease> find(const lease::identity& who) const noexcept {
        const lock_guard held(mutex_);
        const auto found = leases_.find(who);
        return found == leases_.end() ? nullptr : found->second;
    }
    /// A new lease or oplock; not in the table yet. The arguments are those of the constructor.
    /// Allocates: in memory of the table's, as the lease does.
    template <class... Arguments>
    [[nodiscard]] std::shared_ptr<lease> make(Arguments&&... how) {
        return std::allocate_shared<lease>(std::pmr::polymorphic_allocator<lease>(&memory_),
                                           std::forward<Arguments>(how)..., memory_);
    }
    /// Adds a lease. Returns false if its key has one: that of another file, or one
    /// that has ended since.
    [[nodiscard]] bool add(const std::shared_ptr<lease>& fresh) {
        const lock_guard held(mutex_);
        return leases_.emplace(fresh->who(), fresh).second;
    }
    void remove(const lease& ended) noexcept {
        std::shared_ptr<lease> removed;  // perhaps the last to hold it: released without the mutex
        const lock_guard held(mutex_);
        const auto found = leases_.find(ended.who());
        if (found == leases_.end() or found->second.get() != &ended) return;
        removed = std::move(found->second);
        leases_.erase(found);
    }
    [[nodiscard]] std::size_t size() const noexcept {
        const lock_guard held(mutex_);
        return leases_.size();
    }

private:
    shared_memory memory_;
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    recycled_memory nodes_ SLUICE_GUARDED_BY(mutex_);
    std::pmr::map<lease::identity, std::shared_ptr<lease>> leases_ SLUICE_GUARDED_BY(mutex_){&nodes_};
};

}  // namespace sluice::smb::server
