#pragma once

#include <array>
#include <utility>
#include <vector>

#include "sluice/sync/byte_range.hpp"
#include "tests/interleave/scheduler.hpp"

// The bugs of published range locks, each reproduced in a minimal form, for tests that must detect
// them: the skip list of T.-D. Nguyen's thesis (TU München 2024), for which one level is
// sufficient, and its list for comparison, after Kogan, Dice and Issa (EuroSys 2020), whose
// algorithm does not have these bugs.

namespace sluice::interleave {

enum class defect {
    none,
    mark_stays_in_pointer,    // a removed node is passed with its mark: its predecessor is
                              // treated as removed, too
    stops_before_what_left,   // a marked node is neither unlinked nor ignored if it begins at the
                              // start of the new range
    walks_past_its_aim,       // after an unlink, the search continues past its target
    sentinels_are_ranges,     // head and tail have ranges: the first and the last byte
    one_byte_is_never_found,  // a release searches by the end, and passes nodes that begin there
};

/// A lock of one thread, according to the listings: nodes of a list are marked first and unlinked
/// by later searches.
template <defect Defect>
class listed_range_lock {
public:
    class guard {
    public:
        guard() = default;
        guard(listed_range_lock* lock, const sync::byte_range& where) : lock_(lock), where_(where) {}
        explicit operator bool() const { return lock_ != nullptr; }
        void unlock() { std::exchange(lock_, nullptr)->release(where_); }

    private:
        listed_range_lock* lock_ = nullptr;
        sync::byte_range where_ = sync::byte_range::none_at(0);
    };

    [[nodiscard]] guard try_lock(const sync::byte_range& where) {
        if (where.is_nowhere()) return {this, where};
        const auto [before, behind] = search(where, false);
        if (before != head and nodes_[before].last >= where.first()) return {};
        if (behind != tail and nodes_[behind].first <= where.last()) return {};
        if (Defect == defect::sentinels_are_ranges and (where.first() == 0 or where.last() == last_byte))
            return {};
        nodes_.push_back({.first = where.first(), .last = where.last(), .next = behind * 2});
        nodes_[before].next = (nodes_.size() - 1) * 2;
        return {this, where};
    }

private:
    struct node {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        std::size_t next = 0;  // twice the index, plus one if this node was removed
    };
    static constexpr std::size_t head = 0;
    static constexpr std::size_t tail = 1;
    static constexpr std::uint64_t last_byte = ~std::uint64_t{0};

    [[nodiscard]] bool is_marked(std::size_t at) const { return (nodes_[at].next & 1) != 0; }
    [[nodiscard]] bool is_before(std::size_t at, const sync::byte_range& where) const {
        return std::pair(nodes_[at].first, nodes_[at].last) < std::pair(where.first(), where.last());
    }

    [[nodiscard]] std::pair<std::size_t, std::size_t> search(const sync::byte_range& where, bool is_release) {
        std::size_t before = head;
        std::size_t at = nodes_[head].next / 2;
        bool has_unlinked = false;
        while (at != tail) {
            const bool stops = Defect == defect::stops_before_what_left and nodes_[at].first >= where.first();
            if (is_marked(at) and not stops) {
                const std::size_t kept_mark = Defect == defect::mark_stays_in_pointer ? 1 : 0;
                nodes_[before].next = (nodes_[at].next & ~std::size_t{1}) | kept_mark;
                at = nodes_[before].next / 2;
                has_unlinked = true;
                continue;
            }
            const bool overruns =
                Defect == defect::walks_past_its_aim and has_unlinked and nodes_[at].first == where.first();
            const bool misses =
                Defect == defect::one_byte_is_never_found and is_release and nodes_[at].last <= where.first();
            if (not is_before(at, where) and not overruns and not misses) break;
            before = std::exchange(at, nodes_[at].next / 2);
            has_unlinked = false;
        }
        return {before, at};
    }
    void release(const sync::byte_range& where) {
        if (where.is_nowhere()) return;
        const std::size_t found = search(where, true).second;
        if (found == tail or nodes_[found].first != where.first())
            return;  // it stays locked
                     // forever
        nodes_[found].next |= 1;
    }

    std::vector<node> nodes_{{.next = tail * 2}, {}};
};

/// Ranges in one list, for several threads. A release marks the node's link: with one exchange, or,
/// as in the port, by reading the link and writing it.
template <bool ReadsAndWrites>
class ported_range_list {
public:
    /// Inserts a range. Each node is used only once.
    [[nodiscard]] bool insert(unsigned number, const sync::byte_range& where) {
        node& own = nodes_[number];
        own.where = where;
        for (;;) {
            word* before = &head_;
            std::uint32_t link = before->load(std::memory_order_seq_cst);
            while ((link & 1) == 0) {
                node* const next = link == 0 ? nullptr : &nodes_[link / 2];
                const std::uint32_t beyond = next == nullptr ? 0 : next->next.load(std::memory_order_seq_cst);
                if ((beyond & 1) != 0) {
                    if (not exchange(*before, link, beyond - 1)) break;
                } else if (next != nullptr and next->where.last() < where.first()) {
                    before = &next->next;
                    link = beyond;
                } else if (next != nullptr and next->where.overlaps(where)) {
                    return false;
                } else {
                    own.next.store(link, std::memory_order_seq_cst);
                    if (not exchange(*before, link, number * 2)) break;
                    return true;
                }
            }
        }
    }
    void release(unsigned number) {
        word& link = nodes_[number].next;
        if constexpr (ReadsAndWrites) {
            const std::uint32_t before = link.load(std::memory_order_seq_cst);
            link.store(before | 1, std::memory_order_seq_cst);
        } else {
            (void)link.fetch_or(1, std::memory_order_seq_cst);
        }
    }

private:
    using word = scheduled_atomics::atomic<std::uint32_t>;
    struct node {
        sync::byte_range where = sync::byte_range::none_at(0);
        word next{0};
    };

    [[nodiscard]] static bool exchange(word& link, std::uint32_t& said, std::uint32_t fresh) {
        const bool is_done =
            link.compare_exchange_strong(said, fresh, std::memory_order_seq_cst, std::memory_order_seq_cst);
        if (is_done) said = fresh;
        return is_done;
    }

    word head_{0};
    std::array<node, 4> nodes_;
};

}  // namespace sluice::interleave
