#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "sluice/base/clock.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/report/limit_rejections.hpp"
#include "sluice/smb/server/session/client_address.hpp"

namespace sluice::smb::server {

/// Slows down password guessing: decides when an address may have its next proof
/// of a password checked.
///
/// An address has limits::logon_failures_free failed logons without any delay. From then on its
/// proofs are checked one at a time, in the order of arrival, with a pause after each wrong
/// one; the pause doubles with each failure, up to limits::logon_delay_max. The check comes
/// after the pause, so that an attempt that is abandoned was never checked, and no answer means
/// nothing. The number of connections does not matter. Other addresses are not delayed. Ten
/// minutes without a failure forgive. A success does not: an attacker can have an account of
/// its own. But the next proof need not wait for a right one: users may share their address
/// with a device that keeps failing.
///
/// An IPv6 host can change its address at will, and some attackers have whole networks. So the
/// networks of 64 and 48 bits of an address count as well, with more failures free: a neighbour
/// that mistypes does not delay a network.
///
/// The delays are bounded themselves: few attempts of an address may wait, and a fixed number of
/// all addresses; those beyond are rejected without a check. A bounded number of addresses is
/// remembered; the one whose last failure is oldest is forgotten first.
///
/// Invariants:
///   1. At most one proof of an address whose proofs are delayed is checked at a time. For any
///   other address, each loop may check one: a few more than the free failures at most.
///   2. An address with an attempt, which waits or is checked, is not forgotten.
///   3. `waiting_` is the number of attempts in all queues. Each entry has its place in `by_age_`.
/// Monitor: any thread that holds no mutex; `mutex_` guards the entries and their queues.
/// Allocates: a node per address that failed. Complexity: O(log n).
class logon_throttle {
    struct entry;

public:
    logon_throttle(const clock_source& clock, limit_rejections& rejections) noexcept
        : clock_(clock), rejections_(rejections) {}
    logon_throttle(const logon_throttle&) = delete;
    logon_throttle& operator=(const logon_throttle&) = delete;
    ~logon_throttle();

    /// An attempt that waits for its turn, or is checked; it ends with the object.
    class attempt {
    public:
        attempt(attempt&& other) noexcept
            : of_(std::exchange(other.of_, nullptr)), at_(other.at_), number_(other.number_) {}
        attempt& operator=(attempt&& other) noexcept {
            std::swap(of_, other.of_);
            std::swap(at_, other.at_);
            std::swap(number_, other.number_);
            return *this;
        }
        ~attempt();

    private:
        friend class logon_throttle;
        attempt(logon_throttle& of, entry& at, std::uint64_t number) noexcept
            : of_(&of), at_(&at), number_(number) {}

        logon_throttle* of_;
        entry* at_;
        std::uint64_t number_;  // in the queue of the entry; 0 once it is checked
    };
    /// Whether a proof from an address is checked now; if not, the attempt that waits; if neither,
    /// it is rejected. A caller that checks a proof calls failed(), if it is wrong, before it
    /// destroys the admission: until then no other of a delayed address is checked.
    struct admission {
        bool is_immediate = false;
        std::optional<attempt> waiting{};
        std::optional<attempt> checking{};  // the address is delayed, but it is its turn
    };
    [[nodiscard]] admission enter(const io::socket_address& from);
    /// How long an attempt should sleep before it asks again. Zero: it is its turn, as in enter(),
    /// until it is destroyed.
    [[nodiscard]] std::chrono::milliseconds wait_for(attempt& which) noexcept;

    /// A proof from an address was checked, and was wrong.
    void failed(const io::socket_address& from);

    [[nodiscard]] std::size_t waiting() const noexcept {
        const lock_guard held(mutex_);
        return waiting_;
    }
    [[nodiscard]] std::size_t addresses() const noexcept {
        const lock_guard held(mutex_);
        return entries_.size();
    }

    static constexpr std::size_t addresses_max = 4096;
    static constexpr std::chrono::minutes failures_expire_after{10};
    /// Those before it in the queue may leave: how long an attempt sleeps for each
    /// of them, and at most.
    static constexpr std::chrono::milliseconds sleep_min{50};
    static constexpr std::chrono::milliseconds sleep_max{250};

private:
    struct entry {
        unsigned failures_free = 0;
        unsigned failures = 0;
        clock_source::steady_time latest{};      // failure
        clock_source::steady_time check_next{};  // not before
        std::deque<std::uint64_t> queue{};       // numbers of attempts, in the order of arrival
        bool is_checking = false;                // a proof
        std::list<client_address>::iterator age{};
    };
    [[nodiscard]] static std::chrono::milliseconds pause_of(const entry& which) noexcept;
    [[nodiscard]] entry* delayed(const io::socket_address& from, clock_source::steady_time now) noexcept
        SLUICE_REQUIRES(mutex_);
    // Returns the limit at which an attempt is rejected, or std::nullopt if it has entered.
    [[nodiscard]] std::optional<limit> enter(const io::socket_address& from, admission& entered)
        SLUICE_REQUIRES(mutex_);
    void failed(const client_address& from, unsigned failures_free) SLUICE_REQUIRES(mutex_);
    [[nodiscard]] bool is_expired(const entry& which, clock_source::steady_time now) const noexcept;
    void leave(entry& at, std::uint64_t number) noexcept SLUICE_REQUIRES(mutex_);
    void end(const attempt& ending) noexcept;
    void make_room() noexcept SLUICE_REQUIRES(mutex_);

    const clock_source& clock_;
    limit_rejections& rejections_;
    mutable ranked_mutex<lock_rank::leaf> mutex_;
    std::map<client_address, entry> entries_ SLUICE_GUARDED_BY(mutex_);
    // By the last failure, the oldest first.
    std::list<client_address> by_age_ SLUICE_GUARDED_BY(mutex_);
    std::size_t waiting_ SLUICE_GUARDED_BY(mutex_) = 0;
    std::uint64_t next_number_ SLUICE_GUARDED_BY(mutex_) = 1;
};

}  // namespace sluice::smb::server
