#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/core/waiter_list.hpp"
#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

/// A name that a CREATE makes visible: the last component of a path, and a stream. Compares without
/// regard to case. Immutable. Allocates: the folded name.
class name_key {
public:
    /// `parent`: the directory; `stream`: its vfs::stream_number(), or 0.
    name_key(const vfs::file_key& parent, std::string_view component, std::uint64_t stream = 0);

    [[nodiscard]] std::size_t hash() const noexcept { return hash_; }
    [[nodiscard]] friend bool operator==(const name_key&, const name_key&) noexcept = default;

private:
    std::size_t hash_ = 0;
    vfs::file_key parent_;
    std::uint64_t stream_ = 0;
    std::string folded_;
};

/// The names that CREATEs of one domain are about to make visible, each from before its creation
/// until its creator has joined. Thus a CREATE that finds a name which is not pending finds the
/// creator's entry, too.
///
/// Invariant: a name is pending once, and counted. Monitor: any thread; the mutex of each
/// shard guards its names and their waiters. Allocates: nothing. Complexity: linear in the
/// pending names of a shard.
class pending_creates {
    struct shard;

public:
    /// A pending create, in the frame of its CREATE. Lifetime: ends before it
    /// is destroyed (ENSURE).
    class place {
    public:
        explicit place(name_key name) noexcept : name_(std::move(name)) {}
        ~place() { ENSURE(not link_.is_linked(), "a pending create ends before it is destroyed"); }
        [[nodiscard]] const name_key& name() const noexcept { return name_; }

    private:
        friend class pending_creates;
        name_key name_;
        waiter_list waiters_;
        list_hook<place> link_;
    };

    pending_creates() noexcept = default;
    pending_creates(const pending_creates&) = delete;
    pending_creates& operator=(const pending_creates&) = delete;

    /// Makes the name pending. Returns false if it is already: then `blocked` is queued.
    [[nodiscard]] bool begin(place& fresh, waiter& blocked) noexcept;
    /// The creator has joined, or has failed. Nothing happens if it has not begun.
    void end(place& ending) noexcept;
    /// Returns whether the name is pending: then `blocked` is queued.
    [[nodiscard]] bool is_pending(const name_key& name, waiter& blocked) noexcept;
    /// Whether any name is pending. If two CREATEs begin a name and ask at the same time,
    /// one may miss the other.
    [[nodiscard]] bool has_any() const noexcept { return count_.load(std::memory_order_seq_cst) != 0; }
    /// A waiter for this name does not wait any more.
    void forget(const name_key& name, waiter& one) noexcept;

private:
    struct shard {
        ranked_mutex<lock_rank::leaf> mutex;  // guards the waiters of the names, too
        intrusive_list<place, &place::link_> names SLUICE_GUARDED_BY(mutex);

        [[nodiscard]] place* find(const name_key& name) noexcept SLUICE_REQUIRES(mutex);
    };
    static constexpr std::size_t shards = 16;
    [[nodiscard]] shard& shard_of(const name_key& name) noexcept { return shards_[name.hash() % shards]; }

    std::array<shard, shards> shards_;
    std::atomic<std::uint32_t> count_{0};  // the number of pending names
};

/// A waiter for a pending name that leaves when it is destroyed.
class pending_create_waiting {
public:
    pending_create_waiting(pending_creates& at, const name_key& name,
                           one_shot_event<wire::nt_status>& woken) noexcept
        : at_(at), name_(name), place_(woken) {}
    pending_create_waiting(const pending_create_waiting&) = delete;
    pending_create_waiting& operator=(const pending_create_waiting&) = delete;
    ~pending_create_waiting() { at_.forget(name_, place_); }

    [[nodiscard]] waiter& place() noexcept { return place_; }

private:
    pending_creates& at_;
    const name_key& name_;
    waiter place_;
};

}  // namespace sluice::smb::server
