#pragma once

#include <memory>
#include <unordered_map>

#include "sluice/base/recycled_memory.hpp"
#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {

class session;

/// Every open of the server, by the number in its id ([MS-SMB2] 3.3.1.10, GlobalOpenTable). Numbers are not
/// used again, so that an id that was closed names nothing, ever. Thread safety: under the server's latch.
class open_table {
public:
    open_table() noexcept = default;
    open_table(const open_table&) = delete;
    open_table& operator=(const open_table&) = delete;

    /// A new open of a client, with an id by which it is found; null when the client may have no more.
    /// Allocates: in memory().
    [[nodiscard]] std::shared_ptr<open> make(const client_reference& by);
    void remove(const open& one) noexcept;
    [[nodiscard]] std::shared_ptr<open> find(const wire::file_id& id) const noexcept;
    /// By the persistent part alone: for reconnection.
    [[nodiscard]] std::shared_ptr<open> find_persistent(std::uint64_t persistent) const noexcept;

    /// What opens are made in, and what else comes and goes with each.
    [[nodiscard]] recycled_memory& memory() noexcept { return memory_; }

    [[nodiscard]] std::size_t size() const noexcept { return opens_.size(); }
    [[nodiscard]] auto begin() const noexcept { return opens_.begin(); }
    [[nodiscard]] auto end() const noexcept { return opens_.end(); }

private:
    recycled_memory memory_;  // outlives all that is in it
    std::pmr::unordered_map<std::uint64_t, std::shared_ptr<open>> opens_{&memory_};
    std::uint64_t next_ = 1;
};

}  // namespace sluice::smb::server
