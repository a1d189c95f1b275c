#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <mutex>

#include "bench/range_lock_peers/peer.hpp"
#include "bench/range_lock_peers/spinning.hpp"

namespace sluice::bench::range_locks {

/// The exclusive range lock on a skip list under a spin lock: X. Song, J. Shi, R. Liu, J. Yang, H.
/// Chen, "Parallelizing Live Migration of Virtual Machines", VEE 2013.
///
/// A held range is two keys: an odd one for its begin, at a random height (p = 1/4, at most 16
/// levels, at most one more than are in use), and an even one for its end, at the bottom. If a
/// range begins where another ends, its key is greater. So a range is free if the key before its
/// first is not a begin, and the next one comes after its end. A request for a taken range lets
/// other threads run and tries again; a release searches for the range. The paper's version gets
/// its nodes from the kernel while it holds the lock; here they come from the lock's own lists.
class song_skip_list {
public:
    static constexpr bool has_readers = false;
    static constexpr unsigned levels_max = 16;

private:
    struct key_node {
        std::uint64_t key = 0;
        key_node* next = nullptr;
    };
    struct begin_node : key_node {
        unsigned levels = 1;
        std::array<begin_node*, levels_max - 1> upper{};  // [0] is the second level
    };

public:
    struct holder {
        std::uint64_t begin = 0;
    };
    static constexpr std::size_t held_bytes = sizeof(begin_node) + sizeof(key_node) + sizeof(holder);

    explicit song_skip_list(const resource& what) noexcept
        : height_max_(std::clamp(what.height_max, 1U, levels_max)) {}
    song_skip_list(const song_skip_list&) = delete;
    song_skip_list& operator=(const song_skip_list&) = delete;

    [[nodiscard]] std::size_t object_bytes() const noexcept { return sizeof(*this); }

    void lock(holder& held, const extent& where, access how) {
        for (backoff pause; not try_lock(held, where, how);)
            pause.wait();
    }
    [[nodiscard]] bool try_lock(holder& held, const extent& where, access) {
        const std::lock_guard holding(latch_);
        const path before = search(begin_key(where.begin));
        const std::uint64_t end_key = where.end << 1;
        const bool is_inside = is_begin(before.last->key);
        if (is_inside or (before.last->next != nullptr and before.last->next->key <= end_key)) return false;
        link(before, where, end_key);
        held.begin = where.begin;
        return true;
    }
    void unlock(holder& held) noexcept {
        const std::lock_guard holding(latch_);
        const path before = search(begin_key(held.begin));
        unlink(before);
    }

private:
    [[nodiscard]] static constexpr std::uint64_t begin_key(std::uint64_t at) noexcept { return at << 1 | 1; }
    [[nodiscard]] static constexpr bool is_begin(std::uint64_t key) noexcept { return key % 2 == 1; }

    // The last node before a key, on each level in use.
    struct path {
        key_node* last;
        std::array<begin_node*, levels_max - 1> upper;
    };

    [[nodiscard]] path search(std::uint64_t key) noexcept {
        path before;
        begin_node* at = &head_;
        for (unsigned level = levels_; level-- != 1;) {
            while (at->upper[level - 1] != nullptr and at->upper[level - 1]->key < key)
                at = at->upper[level - 1];
            before.upper[level - 1] = at;
        }
        before.last = at;
        while (before.last->next != nullptr and before.last->next->key < key)
            before.last = before.last->next;
        return before;
    }

    void link(path before, const extent& where, std::uint64_t end_key) {
        begin_node& begin = take(spare_begins_, begin_storage_);
        key_node& end = take(spare_ends_, end_storage_);
        begin.key = begin_key(where.begin);
        end.key = end_key;
        begin.levels = draw_levels();
        if (begin.levels > levels_) before.upper[levels_++ - 1] = &head_;
        for (unsigned i = 0; i + 1 != begin.levels; ++i) {
            begin.upper[i] = before.upper[i]->upper[i];
            before.upper[i]->upper[i] = &begin;
        }
        end.next = before.last->next;
        begin.next = &end;
        before.last->next = &begin;
    }
    void unlink(const path& before) noexcept {
        begin_node& begin = static_cast<begin_node&>(*before.last->next);
        key_node& end = *begin.next;
        before.last->next = end.next;
        for (unsigned i = 0; i + 1 != begin.levels; ++i)
            before.upper[i]->upper[i] = begin.upper[i];
        while (levels_ != 1 and head_.upper[levels_ - 2] == nullptr)
            --levels_;
        release(spare_begins_, begin);
        release(spare_ends_, end);
    }

    // Marsaglia's xorshift. Each pair of zero bits at the end adds a level.
    [[nodiscard]] unsigned draw_levels() noexcept {
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        const auto drawn = 1 + static_cast<unsigned>(std::countr_zero(random_)) / 2;
        return std::min({drawn, levels_ + 1, height_max_});
    }

    template <class Node>
    static Node& take(key_node*& spare, std::deque<Node>& storage) {
        if (spare == nullptr) return storage.emplace_back();
        Node& node = static_cast<Node&>(*spare);
        spare = node.next;
        return node;
    }
    static void release(key_node*& spare, key_node& node) noexcept {
        node.next = spare;
        spare = &node;
    }

    spin_lock latch_;
    unsigned height_max_;
    unsigned levels_ = 1;  // in use
    std::uint64_t random_ = 0x9e37'79b9'7f4a'7c15;
    begin_node head_;
    key_node* spare_begins_ = nullptr;
    key_node* spare_ends_ = nullptr;
    std::deque<begin_node> begin_storage_;
    std::deque<key_node> end_storage_;
};

}  // namespace sluice::bench::range_locks
