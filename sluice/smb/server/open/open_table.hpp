#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sluice/base/recycled_memory.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/core/shared_memory.hpp"
#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {

/// Every open of the server, by the number in its id ([MS-SMB2] 3.3.1.10, GlobalOpenTable). Numbers
/// are not used again, so that the id of a closed open is never valid. They begin anywhere, so that
/// an id of the server's last run names no open of this one, unless that is restored.
///
/// Invariant: the number of an open names the shard that has it, which is that of the loop
/// that created it. So loops that serve their own opens share no mutex. An open has the number
/// by which it is found.
/// Monitor: any thread; the mutex of each shard guards its opens. What it returns holds the opens,
/// which may have ended. Lifetime: outlives its opens (ENSURE).
class open_table {
public:
    /// `base`: where the numbers begin; 32 bits of it are random at least.
    explicit open_table(std::uint64_t base = 0) noexcept;
    open_table(const open_table&) = delete;
    open_table& operator=(const open_table&) = delete;

    /// Creates an open of a client, with an id by which it is found; null if the client may have no
    /// more. `loop`: the number of the creating loop. Allocates: in memory().
    [[nodiscard]] std::shared_ptr<open> make(const client_reference& by, std::size_t loop);
    /// The same with the number of an earlier process; null also if that is taken. Before clients
    /// are served.
    [[nodiscard]] std::shared_ptr<open> restore(const client_reference& by, std::uint64_t number);
    void remove(const open& one) noexcept;
    [[nodiscard]] std::shared_ptr<open> find(const wire::file_id& id) const noexcept;
    /// Finds an open by the persistent part alone: for reconnection.
    [[nodiscard]] std::shared_ptr<open> find_persistent(std::uint64_t persistent) const noexcept;
    /// Returns the open whose number ends in these 32 bits; null if there is none, or several.
    /// Complexity: a search for each 2^28 opens that its loop has created.
    [[nodiscard]] std::shared_ptr<open> find_by_end(std::uint32_t end) const noexcept;
    /// Returns the last 32 bits of the numbers of opens: at most `most`, the smallest above
    /// `after`, in ascending order, one for each open. Complexity: linear in the opens. Allocates:
    /// the list.
    [[nodiscard]] std::vector<std::uint32_t> ends_after(std::uint32_t after, std::size_t most) const;
    /// Returns all of them, in no order; returns their numbers. Complexity: linear. Allocates: the
    /// list.
    [[nodiscard]] std::vector<std::shared_ptr<open>> all() const;
    [[nodiscard]] std::vector<std::uint64_t> numbers() const;

    /// The memory for the opens of a loop, and for objects that exist as long as an open.
    [[nodiscard]] shared_memory& memory(std::size_t loop) noexcept { return shards_[loop % shards].memory; }

    /// Complexity: constant in the opens.
    [[nodiscard]] std::size_t size() const noexcept;

private:
    static constexpr std::size_t shards = 16;

    // A cache line of its own, so that loops do not disturb each other.
    struct alignas(64) shard {
        shared_memory memory;  // outlives all that is in it
        mutable ranked_mutex<lock_rank::leaf> mutex;
        recycled_memory nodes SLUICE_GUARDED_BY(mutex);
        std::pmr::unordered_map<std::uint64_t, std::shared_ptr<open>> opens SLUICE_GUARDED_BY(mutex){&nodes};
        std::uint64_t next SLUICE_GUARDED_BY(mutex) = 1;
    };
    [[nodiscard]] std::shared_ptr<open> make_in(shard& in, const client_reference& by);
    [[nodiscard]] shard& shard_of(std::uint64_t number) noexcept { return shards_[number % shards]; }
    [[nodiscard]] const shard& shard_of(std::uint64_t number) const noexcept {
        return shards_[number % shards];
    }

    std::array<shard, shards> shards_;
};

}  // namespace sluice::smb::server
