#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <vector>

#include "bench/range_lock_peers/peer.hpp"
#include "bench/range_lock_peers/spinning.hpp"

namespace sluice::bench::range_locks {

/// The exclusive range lock with a bit for each block: L.-D. Nguyen, V. Leis, "Why Files If You
/// Have a DBMS?",
/// ICDE 2024 (LeanStore's shared aliasing area).
///
/// The bits of a range are set word by word; where one is set already, the words taken so far are
/// released. The paper's version then takes another range, which its caller allows. Here the caller
/// determines the range, so it tries again. Exact only for ranges of whole blocks.
class leanstore_bitmap {
public:
    static constexpr bool has_readers = false;
    struct holder {
        std::size_t first = 0;
        std::size_t end = 0;
    };
    static constexpr std::size_t held_bytes = sizeof(holder);  // the bits are the lock's

    explicit leanstore_bitmap(const resource& what)
        : block_shift_(std::countr_zero(what.segment_bytes)),
          words_(what.bytes / what.segment_bytes / word_bits + 1) {}

    [[nodiscard]] std::size_t object_bytes() const noexcept {
        return sizeof(*this) + words_.size() * sizeof(words_[0]);
    }

    void lock(holder& held, const extent& where, access how) {
        for (backoff pause; not try_lock(held, where, how);)
            pause.wait();
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access) {
        held = {.first = where.begin >> block_shift_, .end = ((where.end - 1) >> block_shift_) + 1};
        for (std::size_t at = held.first; at != held.end;) {
            const piece next = piece_at(at, held.end);
            if (not set(words_[next.word], next.bits)) {
                held.end = at;
                unlock(held);
                return false;
            }
            at = next.end;
        }
        return true;
    }
    void unlock(holder& held) noexcept {
        for (std::size_t at = held.first; at != held.end;) {
            const piece next = piece_at(at, held.end);
            // release: pairs with the acquire of set().
            words_[next.word].fetch_and(~next.bits, std::memory_order_release);
            at = next.end;
        }
    }

private:
    static constexpr std::size_t word_bits = 64;

    // The part of a range in one word.
    struct piece {
        std::size_t word;
        std::size_t end;
        std::uint64_t bits;
    };
    [[nodiscard]] static piece piece_at(std::size_t block, std::size_t range_end) noexcept {
        const std::size_t word = block / word_bits;
        const std::size_t end = std::min(range_end, (word + 1) * word_bits);
        const std::uint64_t ones = ~std::uint64_t{0} >> (word_bits - (end - block));
        return {.word = word, .end = end, .bits = ones << block % word_bits};
    }
    // Sets all of the bits or none.
    [[nodiscard]] static bool set(std::atomic<std::uint64_t>& word, std::uint64_t bits) noexcept {
        std::uint64_t seen = word.load(std::memory_order_relaxed);
        while ((seen & bits) == 0)
            // acquire: pairs with the release of unlock().
            if (word.compare_exchange_weak(seen, seen | bits, std::memory_order_acquire,
                                           std::memory_order_relaxed))
                return true;
        return false;
    }

    int block_shift_;
    std::vector<std::atomic<std::uint64_t>> words_;
};

}  // namespace sluice::bench::range_locks
