#pragma once

#include <atomic>
#include <bit>
#include <vector>

#include "bench/range_lock_peers/peer.hpp"
#include "bench/range_lock_peers/spinning.hpp"

namespace sluice::bench::range_locks {

/// The reader-writer range lock of segment words: J.-H. Kim, J. Kim, H. Kang, C.-G. Lee, S.
/// Park, Y. Kim, "pNOVA: Optimizing Shared File I/O Operations of NVM File System on Manycore
/// Servers", APSys 2019.
///
/// A resource of known size is divided into segments with a word each: the highest bit for a
/// writer, the others count the readers. A range takes its words in ascending order, so threads do
/// not wait in a circle. Exact only for ranges of whole segments; others conflict unnecessarily.
class pnova_segments {
public:
    static constexpr bool has_readers = true;
    struct holder {
        std::size_t first = 0;
        std::size_t end = 0;
        access how = access::exclusive;
    };
    static constexpr std::size_t held_bytes = sizeof(holder);  // the words are the lock's

    explicit pnova_segments(const resource& what)
        : segment_shift_(std::countr_zero(what.segment_bytes)),
          words_((what.bytes + what.segment_bytes - 1) / what.segment_bytes) {}

    [[nodiscard]] std::size_t object_bytes() const noexcept {
        return sizeof(*this) + words_.size() * sizeof(words_[0]);
    }

    void lock(holder& held, const extent& where, access how) {
        begin(held, where, how);
        for (std::size_t i = held.first; i != held.end; ++i)
            for (backoff pause; not take(words_[i], how);)
                pause.wait();
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access how) {
        begin(held, where, how);
        for (std::size_t i = held.first; i != held.end; ++i) {
            if (take(words_[i], how)) continue;
            held.end = i;
            unlock(held);
            return false;
        }
        return true;
    }
    void unlock(holder& held) noexcept {
        for (std::size_t i = held.first; i != held.end; ++i) {
            // release: pairs with the acquire of take(). A writer's word has no
            // readers, so it is stored.
            if (held.how == access::shared)
                words_[i].fetch_sub(1, std::memory_order_release);
            else
                words_[i].store(0, std::memory_order_release);
        }
    }

private:
    static constexpr std::uint32_t writer = 1U << 31;

    void begin(holder& held, const extent& where, access how) const noexcept {
        held = {.first = where.begin >> segment_shift_,
                .end = ((where.end - 1) >> segment_shift_) + 1,
                .how = how};
    }
    [[nodiscard]] static bool take(std::atomic<std::uint32_t>& word, access how) noexcept {
        // acquire: pairs with the release of unlock().
        if (how == access::exclusive) {
            std::uint32_t expected = 0;
            return word.load(std::memory_order_relaxed) == 0 and
                   word.compare_exchange_strong(expected, writer, std::memory_order_acquire,
                                                std::memory_order_relaxed);
        }
        std::uint32_t readers = word.load(std::memory_order_relaxed);
        while ((readers & writer) == 0)
            if (word.compare_exchange_weak(readers, readers + 1, std::memory_order_acquire,
                                           std::memory_order_relaxed))
                return true;
        return false;
    }

    int segment_shift_;
    std::vector<std::atomic<std::uint32_t>> words_;
};

}  // namespace sluice::bench::range_locks
