#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "sluice/sync/skiplist/link.hpp"

namespace sluice::sync::skiplist {

/// A post of a skip list (range_skiplist.hpp): its node, and what the node's bell and bottom link said when
/// it was put there.
struct post {
    node_number number = no_node;
    std::uint32_t bell = 0;
    std::uint64_t word = 0;
};

/// Which posts a skip list has, in the order of their bytes, so that a search can begin next to where it
/// ends. What find() says is a hint: the post may be gone, and its node be something else.
///
/// Invariant: `version_` is odd while entries change, so who finds the same even number before and after has
/// read what belongs together. Thread safety: find() and count() by any thread; the rest by who has begin(),
/// which never waits. Allocates: nothing.
template <class Atomics, unsigned PostsMax>
class post_directory {
public:
    /// The last one at or before `first`; no_node: there is none, or others are at it.
    [[nodiscard]] post find(std::uint64_t first) const noexcept {
        // acquire: pairs with the release of end_change().
        const std::uint32_t version = version_.load(std::memory_order_acquire);
        const unsigned entries = count();
        if (entries == 0) return {};
        const unsigned at = last_not_behind(first, entries);
        // acquire: pairs with the release of put(). Who has read one of a change that is not over sees below
        // that it has begun.
        const std::uint64_t found_at = firsts_[at].load(std::memory_order_acquire);
        const std::uint64_t who = whos_[at].load(std::memory_order_acquire);
        const std::uint64_t word = words_[at].load(std::memory_order_acquire);
        if (version_.load(std::memory_order_relaxed) != version or version % 2 != 0 or found_at > first)
            return {};
        return post_of(who, word);
    }
    [[nodiscard]] unsigned count() const noexcept { return count_.load(std::memory_order_relaxed); }

    /// False: another thread is changing it.
    [[nodiscard]] bool begin() noexcept {
        // acquire: pairs with the release of end().
        return is_taken_.load(std::memory_order_relaxed) == 0 and
               is_taken_.exchange(1, std::memory_order_acquire) == 0;
    }
    void end() noexcept { is_taken_.store(0, std::memory_order_release); }  // pairs with begin()

    [[nodiscard]] post entry(unsigned at) const noexcept {
        return post_of(whos_[at].load(std::memory_order_relaxed), words_[at].load(std::memory_order_relaxed));
    }
    /// There is room.
    void add(std::uint64_t first, const post& fresh) noexcept {
        begin_change();
        unsigned at = count();
        count_.store(at + 1, std::memory_order_relaxed);
        for (; at != 0 and firsts_[at - 1].load(std::memory_order_relaxed) > first; --at)
            put(at, firsts_[at - 1].load(std::memory_order_relaxed), entry(at - 1));
        put(at, first, fresh);
        end_change();
    }
    void remove(unsigned at) noexcept {
        begin_change();
        const unsigned entries = count();
        for (; at + 1 != entries; ++at)
            put(at, firsts_[at + 1].load(std::memory_order_relaxed), entry(at + 1));
        count_.store(entries - 1, std::memory_order_relaxed);
        end_change();
    }

private:
    template <class T>
    using atomic = typename Atomics::template atomic<T>;

    [[nodiscard]] static post post_of(std::uint64_t who, std::uint64_t word) noexcept {
        return {.number = static_cast<node_number>(who >> 32),
                .bell = static_cast<std::uint32_t>(who),
                .word = word};
    }
    // The first one if all are behind. Without a branch on what it reads, which would be guessed wrong half
    // of the time.
    [[nodiscard]] unsigned last_not_behind(std::uint64_t first, unsigned entries) const noexcept {
        unsigned at = 0;
        while (entries > 1) {
            const unsigned half = entries / 2;
            const bool is_not_behind = firsts_[at + half].load(std::memory_order_relaxed) <= first;
            at = __builtin_unpredictable(is_not_behind) ? at + half : at;
            entries -= half;
        }
        return at;
    }
    void put(unsigned at, std::uint64_t first, const post& fresh) noexcept {
        firsts_[at].store(first, std::memory_order_release);  // as find() says
        whos_[at].store(std::uint64_t{fresh.number} << 32 | fresh.bell, std::memory_order_release);
        words_[at].store(fresh.word, std::memory_order_release);
    }
    void begin_change() noexcept {
        version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    void end_change() noexcept {
        // release: pairs with the acquire of find().
        version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }

    // Read by all, seldom written.
    alignas(64) atomic<std::uint32_t> version_{0};
    atomic<std::uint32_t> count_{0};
    std::array<atomic<std::uint64_t>, PostsMax> firsts_{};
    std::array<atomic<std::uint64_t>, PostsMax> whos_{};  // numbers, and bells below
    std::array<atomic<std::uint64_t>, PostsMax> words_{};
    alignas(64) atomic<std::uint32_t> is_taken_{0};
};

}  // namespace sluice::sync::skiplist
