#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/report/limit_rejections.hpp"
#include "sluice/smb/server/session/client_address.hpp"

namespace sluice::smb::server {

class client_quotas;

/// A client whose use of the shared resources is counted: a user, on all connections; or
/// an address, for guests and anonymous sessions. It stays in the table while a
/// reference to it exists.
/// Atomic: the count of references. Each reference is a value of its owner, who may copy it, and
/// destroy it, on any thread that holds no mutex of a leaf.
class client_reference {
public:
    client_reference() noexcept = default;
    client_reference(const client_reference& other) noexcept;
    client_reference(client_reference&& other) noexcept : use_(std::exchange(other.use_, nullptr)) {}
    client_reference& operator=(client_reference other) noexcept {
        std::swap(use_, other.use_);
        return *this;
    }
    ~client_reference();

    [[nodiscard]] explicit operator bool() const noexcept { return use_ != nullptr; }
    /// "user alice", "address 10.0.0.1".
    [[nodiscard]] const std::string& name() const noexcept;
    [[nodiscard]] client_quotas& quotas() const noexcept;
    /// Returns false for a guest.
    [[nodiscard]] bool is_user() const noexcept;
    /// How often a request that a key of this client has signed had a wrong proof of a password,
    /// since the client entered the table.
    [[nodiscard]] unsigned failed_proofs() const noexcept;
    void count_failed_proof() const noexcept;
    [[nodiscard]] friend bool operator==(const client_reference&, const client_reference&) noexcept = default;

private:
    friend class client_quotas;
    friend class quota_hold;
    struct use;
    explicit client_reference(use& of) noexcept;

    use* use_ = nullptr;
};

/// Monitor, as part of the quotas, whose mutex guards `held`; the counts are atomic, and the rest
/// does not change once the entry is in the table.
struct client_reference::use {
    client_quotas* of = nullptr;
    client_reference group;             // of all guests; null: a client by itself
    const std::string* name = nullptr;  // the key of its entry
    std::atomic<std::size_t> references{0};
    std::atomic<unsigned> failed_proofs{0};
    std::array<std::size_t, shared_limits_count> held{};
};

/// An amount of a shared resource that a client holds, released with the object.
/// Thread safety: a value of its owner, who may use it on any thread that holds no mutex of a leaf.
/// Allocates: nothing. Complexity: constant.
class quota_hold {
public:
    quota_hold() noexcept = default;
    quota_hold(quota_hold&& other) noexcept
        : by_(std::move(other.by_)), what_(other.what_), amount_(std::exchange(other.amount_, 0)) {}
    quota_hold& operator=(quota_hold&& other) noexcept {
        if (this != &other) {
            reset();
            by_ = std::move(other.by_);
            what_ = other.what_;
            amount_ = std::exchange(other.amount_, 0);
        }
        return *this;
    }
    ~quota_hold() { reset(); }

    [[nodiscard]] std::size_t amount() const noexcept { return amount_; }
    /// Null: it was never taken, or has been reset.
    [[nodiscard]] const client_reference& client() const noexcept { return by_; }
    /// Takes more, or releases some. Returns false, and changes nothing, if the client may
    /// not take that much more (the rejection is counted then), or if it is empty.
    /// Releasing always succeeds.
    [[nodiscard]] bool resize(std::size_t amount) noexcept;
    /// The same without counting a rejection, which is logged: for a caller that holds a mutex,
    /// and counts it later.
    [[nodiscard]] bool try_resize(std::size_t amount) noexcept;
    /// Takes over what another hold of the same client and resource has (ENSURE); locks nothing.
    void absorb(quota_hold&& other) noexcept;
    /// Moves the whole amount into a hold of its own: this one stays, with an amount
    /// of 0. Locks nothing.
    [[nodiscard]] quota_hold take_all() noexcept;
    void reset() noexcept;

private:
    friend class client_quotas;

    client_reference by_;
    limit what_ = limit::count;
    std::size_t amount_ = 0;
};

/// Divides each resource that all clients share: the limits up to shared_limits_count.
///
/// A client may take more of a resource only if it then holds at most as much as remains free after
/// others: with bound B, in use U and its own h, it may take n if h + n <= B - U. One client gets
/// half at most. N greedy clients that take alternately get 1/(N+1) each. A client that holds
/// nothing always gets up to half of the free rest. So no client has to be evicted, and one can
/// still use much more than an equal share.
///
/// Invariants:
///   1. The amount in use of a resource is the sum of all holds of it, and never exceeds its bound.
///   2. A client is in the table exactly while a reference to it exists: the last reference ends,
///   and the first one begins, under the mutex.
///   3. The holds of a member of a group are part of those of the group. A client without
///   references holds nothing.
/// Monitor: any thread; `mutex_` guards the table and all amounts. Rejections are counted and
/// logged after it is unlocked. Lifetime: outlives its references and holds (ENSURE). Allocates:
/// an entry per client.
class client_quotas {
public:
    client_quotas(const shared_bounds& of_all, limit_rejections& rejections) noexcept;
    client_quotas(const client_quotas&) = delete;
    client_quotas& operator=(const client_quotas&) = delete;
    ~client_quotas();

    /// Returns the client with the name of a user, regardless of case.
    [[nodiscard]] client_reference user(std::string_view name);
    /// Returns the client for an address of guests and anonymous sessions. All such addresses
    /// together have the share of one client, and each address a fair part of that: an account is
    /// harder to get than another address.
    [[nodiscard]] client_reference guest(const client_address& where);

    /// Takes `amount` of `what` for a client. Returns an empty hold if the client may not take it;
    /// that is counted as a rejection. A null client may take nothing. An amount of 0 always gives
    /// a hold, to be resized later.
    [[nodiscard]] quota_hold take(const client_reference& by, limit what, std::size_t amount = 1) noexcept;

    /// While what clients had in an earlier process is restored, they may take all that is free:
    /// in another order than then, the rule above could refuse some. Before clients are served.
    void set_restoring(bool is_so) noexcept {
        const lock_guard held(mutex_);
        is_restoring_ = is_so;
    }
    [[nodiscard]] std::size_t bound_of(limit what) const noexcept { return bounds_[index(what)]; }
    [[nodiscard]] std::size_t in_use(limit what) const noexcept {
        const lock_guard held(mutex_);
        return in_use_[index(what)];
    }
    /// Returns the highest use by one client. Complexity: O(clients).
    [[nodiscard]] std::size_t most_of_client(limit what) const noexcept;
    [[nodiscard]] std::size_t clients() const noexcept {
        const lock_guard held(mutex_);
        return clients_.size();
    }
    [[nodiscard]] limit_rejections& rejections() const noexcept { return rejections_; }

private:
    friend class client_reference;
    friend class quota_hold;

    [[nodiscard]] static constexpr std::size_t index(limit what) noexcept {
        const auto which = static_cast<std::size_t>(what);
        ENSURE(which < shared_limits_count, "a limit that clients share");
        return which;
    }
    using client_map = std::unordered_map<std::string, client_reference::use>;

    // The entry of a client, with one more reference, which the caller adopts.
    [[nodiscard]] client_reference::use& enter(std::string&& name, bool& is_new) SLUICE_REQUIRES(mutex_);
    [[nodiscard]] bool try_take(client_reference::use& by, limit what, std::size_t amount) noexcept;
    // Returns whether there was room.
    [[nodiscard]] bool take_room(client_reference::use& by, limit what, std::size_t amount) noexcept;
    // Returns the amount that a client may take more.
    [[nodiscard]] std::size_t room_of(const client_reference::use& by, std::size_t which) const noexcept
        SLUICE_REQUIRES(mutex_);
    void release(client_reference::use& by, limit what, std::size_t amount) noexcept;
    // A reference ends, perhaps the last.
    void drop(client_reference::use& of) noexcept;

    const shared_bounds bounds_;
    limit_rejections& rejections_;
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    std::array<std::size_t, shared_limits_count> in_use_ SLUICE_GUARDED_BY(mutex_){};
    client_map clients_ SLUICE_GUARDED_BY(mutex_);
    bool is_restoring_ SLUICE_GUARDED_BY(mutex_) = false;
};

// Adopts a reference that enter() has counted.
inline client_reference::client_reference(use& of) noexcept : use_(&of) {}
inline client_reference::client_reference(const client_reference& other) noexcept : use_(other.use_) {
    // relaxed: the reference that is copied keeps the entry.
    if (use_ != nullptr) use_->references.fetch_add(1, std::memory_order_relaxed);
}
inline client_reference::~client_reference() {
    if (use_ == nullptr) return;
    // The last one ends under the mutex. release: pairs with the acquire in drop().
    std::size_t before = use_->references.load(std::memory_order_relaxed);
    while (before > 1)
        if (use_->references.compare_exchange_weak(before, before - 1, std::memory_order_release,
                                                   std::memory_order_relaxed))
            return;
    use_->of->drop(*use_);
}
inline const std::string& client_reference::name() const noexcept {
    ENSURE(use_ != nullptr);
    return *use_->name;
}
inline bool client_reference::is_user() const noexcept {
    ENSURE(use_ != nullptr);
    return not use_->group;
}
inline unsigned client_reference::failed_proofs() const noexcept {
    ENSURE(use_ != nullptr);
    return use_->failed_proofs.load(std::memory_order_relaxed);
}
inline void client_reference::count_failed_proof() const noexcept {
    ENSURE(use_ != nullptr);
    use_->failed_proofs.fetch_add(1, std::memory_order_relaxed);  // a count, orders nothing
}
inline client_quotas& client_reference::quotas() const noexcept {
    ENSURE(use_ != nullptr);
    return *use_->of;
}

}  // namespace sluice::smb::server
