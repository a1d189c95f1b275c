#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sluice/sync/bucket_latch.hpp"
#include "sluice/sync/lock_node.hpp"

namespace sluice::sync {

/// An entry of a bucket: a pointer to a node, with a digest of its segment in the upper bits.
/// Different digests mean different segments. A value.
template <class Atomics>
class bucket_entry {
public:
    using node = lock_node<Atomics>;

    bucket_entry() noexcept = default;
    bucket_entry(const node& one, std::uint64_t digest) noexcept
        : bits_(reinterpret_cast<std::uintptr_t>(&one) | digest << address_bits) {
        ENSURE(address() == &one, "addresses of programs have 48 bits");
    }
    [[nodiscard]] friend bool operator==(bucket_entry, bucket_entry) noexcept = default;
    [[nodiscard]] bool is_free() const noexcept { return bits_ == 0; }
    [[nodiscard]] bool may_be_in(std::uint64_t digest) const noexcept {
        return bits_ >> address_bits == digest;
    }
    [[nodiscard]] std::uint64_t digest() const noexcept { return bits_ >> address_bits; }
    [[nodiscard]] node* address() const noexcept {
        return reinterpret_cast<node*>(bits_ << digest_bits >> digest_bits);
    }

private:
    static constexpr unsigned address_bits = 48;
    static constexpr unsigned digest_bits = 16;

    std::uint64_t bits_ = 0;
};

enum class bucket_entering { entered, conflicting, crowded };

/// The held ranges of some segments of a bucket_table; see there. One cache line if atomics are
/// plain words. Thread safety: `latch` guards all other members.
template <class Atomics>
struct alignas(64) lock_bucket {
    using node = lock_node<Atomics>;
    using entry = bucket_entry<Atomics>;
    static constexpr std::size_t entries_max = 7;

    bucket_latch<Atomics> latch;
    // Guarded by it:
    std::uint32_t marks : 23 = 0;  // changed while also holding the lock's mutex
    std::uint32_t is_closed : 1 = 1;
    std::uint32_t leaves : 8 = 0;            // the low bits of their number
    std::array<entry, entries_max> entries;  // the used ones come first

    [[nodiscard]] std::size_t used() const noexcept;
    [[nodiscard]] bool has(entry one) const noexcept;
    [[nodiscard]] bucket_entering add(entry one) noexcept;
    [[nodiscard]] bool remove(entry one) noexcept;
};
static_assert(sizeof(lock_bucket<real_atomics>) == 64, "a cache line");

template <class Atomics>
std::size_t lock_bucket<Atomics>::used() const noexcept {
    return static_cast<std::size_t>(std::ranges::find_if(entries, &entry::is_free) - entries.begin());
}

template <class Atomics>
bool lock_bucket<Atomics>::has(entry one) const noexcept {
    return std::ranges::find(entries, one) != entries.end();
}

// Adds an entry if nothing conflicts with it.
template <class Atomics>
auto lock_bucket<Atomics>::add(entry one) noexcept -> bucket_entering {
    for (entry& each : entries) {
        if (each.is_free()) {
            each = one;
            return bucket_entering::entered;
        }
        if (not each.may_be_in(one.digest())) continue;
        const lock_args wanted = one.address()->args();
        const node& held = *each.address();
        if (held.where().overlaps(wanted.where) and held.blocks_later(wanted))
            return bucket_entering::conflicting;
    }
    return bucket_entering::crowded;
}

// Moves the last entry into its place.
template <class Atomics>
bool lock_bucket<Atomics>::remove(entry one) noexcept {
    std::size_t at = 0;
    while (entries[at] != one)
        if (++at == entries_max) return false;
    std::size_t last = at;
    while (last + 1 != entries_max and not entries[last + 1].is_free())
        ++last;
    entries[at] = entries[last];
    entries[last] = entry();
    return true;
}

}  // namespace sluice::sync
