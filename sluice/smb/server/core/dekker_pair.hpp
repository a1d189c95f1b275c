#pragma once

#include <cstdint>

#include "sluice/base/ensure.hpp"
#include "sluice/sync/atomics.hpp"

namespace sluice::smb::server {

/// Two counts, each raised by its side before that side reads the other's: the protocol of Dekker, by which
/// two sides notice each other without a mutex. Writers of a file and a grant of a read lease are such sides,
/// or the requests of one loop and a directory rename that closes the barrier.
///
/// Invariant: if both sides raise their counts, at least one finds the other side raised, unless that has
/// been lowered. The result depends on every operation of raise() being seq_cst: with anything weaker, both
/// loads may overtake both stores. So no caller chooses an order; tests/interleave explores it with delayed
/// stores. Atomic: any thread. Allocates: nothing. A template over sync/atomics.hpp, for these tests.
template <class Atomics>
class basic_dekker_pair {
public:
    enum class side : std::uint8_t { first, second };

    basic_dekker_pair() noexcept = default;
    basic_dekker_pair(const basic_dekker_pair&) = delete;
    basic_dekker_pair& operator=(const basic_dekker_pair&) = delete;
    ~basic_dekker_pair() = default;

    /// Raises the count of a side. Returns whether the other side is raised: then the caller gives way, as
    /// its protocol says, and if that means to wait, lowers its count first.
    [[nodiscard]] bool raise(side by) noexcept {
        of(by).fetch_add(1, std::memory_order_seq_cst);  // pairs with the load below, by the other side
        return is_raised(other_than(by));
    }
    void lower(side by) noexcept {
        // release: the work done while it was raised; pairs with the load of is_raised().
        const std::uint32_t before = of(by).fetch_sub(1, std::memory_order_release);
        ENSURE(before != 0, "a side is lowered as often as raised");
    }
    [[nodiscard]] bool is_raised(side which) const noexcept {
        return of(which).load(std::memory_order_seq_cst) != 0;  // pairs with raise()
    }

private:
    using count = typename Atomics::template atomic<std::uint32_t>;

    [[nodiscard]] static constexpr side other_than(side one) noexcept {
        return one == side::first ? side::second : side::first;
    }
    [[nodiscard]] count& of(side which) noexcept { return which == side::first ? first_ : second_; }
    [[nodiscard]] const count& of(side which) const noexcept {
        return which == side::first ? first_ : second_;
    }

    count first_{0};
    count second_{0};
};

using dekker_pair = basic_dekker_pair<sync::real_atomics>;

}  // namespace sluice::smb::server
