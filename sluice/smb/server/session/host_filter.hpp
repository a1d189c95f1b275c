#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "sluice/io/call/socket_address.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/session/host_rules.hpp"

namespace sluice::smb::server {

/// The addresses that may connect to the server, of which a reload publishes the next, and the
/// number of connections that were closed because of them.
/// Monitor: any thread; `mutex_` guards the pointer to the rules, which are immutable. Its rank
/// allows a caller that holds any other mutex. Allocates: the rules, when they are published.
class host_filter {
public:
    host_filter() : rules_(std::make_shared<const host_rules>()) {}
    host_filter(const host_filter&) = delete;
    host_filter& operator=(const host_filter&) = delete;

    void publish(host_rules fresh) {
        auto next = std::make_shared<const host_rules>(std::move(fresh));
        const lock_guard held(mutex_);
        rules_.swap(next);  // the rules before are released after the mutex
    }
    /// Returns whether a client of that address may connect. The rules are about IP addresses; a
    /// peer of another family may always connect. Complexity: linear in the rules.
    [[nodiscard]] bool permits(const io::socket_address& peer) const noexcept {
        const bool is_ip =
            peer.family() == io::address_family::ip_v4 or peer.family() == io::address_family::ip_v6;
        return not is_ip or current()->permit(peer.ip_bytes());
    }
    void count_denied() noexcept { denied_.fetch_add(1, std::memory_order_relaxed); }
    // relaxed: a count, orders nothing.
    [[nodiscard]] std::uint64_t denied() const noexcept { return denied_.load(std::memory_order_relaxed); }

private:
    [[nodiscard]] std::shared_ptr<const host_rules> current() const noexcept {
        const lock_guard held(mutex_);
        return rules_;
    }

    mutable ranked_mutex<lock_rank::memory> mutex_;
    std::shared_ptr<const host_rules> rules_ SLUICE_GUARDED_BY(mutex_);
    std::atomic<std::uint64_t> denied_{0};
};

}  // namespace sluice::smb::server
