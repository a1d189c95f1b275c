#pragma once

#include <map>
#include <memory>
#include <utility>

#include "sluice/base/recycled_memory.hpp"
#include "sluice/smb/server/file/lease.hpp"

namespace sluice::smb::server {

/// The leases of all clients, by client and key ([MS-SMB2] 3.3.1.11, GlobalLeaseTableList). Oplocks are not
/// in it: their opens have them. Thread safety: under the server's latch.
class lease_table {
public:
    lease_table() noexcept = default;
    lease_table(const lease_table&) = delete;
    lease_table& operator=(const lease_table&) = delete;

    /// Null if there is none. Complexity: O(log n) in leases.
    [[nodiscard]] std::shared_ptr<lease> find(const lease::identity& who) const noexcept {
        const auto found = leases_.find(who);
        return found == leases_.end() ? nullptr : found->second;
    }
    /// A new lease or oplock; not in the table yet. Allocates: in memory of the table's, as the lease does.
    template <class... Arguments>
    [[nodiscard]] std::shared_ptr<lease> make(Arguments&&... how) {
        return std::allocate_shared<lease>(std::pmr::polymorphic_allocator<lease>(&memory_),
                                           std::forward<Arguments>(how)..., memory_);
    }
    /// Of a key that has none yet.
    void add(const std::shared_ptr<lease>& fresh) { leases_.emplace(fresh->who(), fresh); }
    void remove(const lease& ended) noexcept { leases_.erase(ended.who()); }
    [[nodiscard]] std::size_t size() const noexcept { return leases_.size(); }

private:
    recycled_memory memory_;
    std::pmr::map<lease::identity, std::shared_ptr<lease>> leases_{&memory_};
};

}  // namespace sluice::smb::server
