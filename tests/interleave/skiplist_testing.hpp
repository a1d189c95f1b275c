#pragma once

#include <array>
#include <set>
#include <vector>

#include "sluice/sync/skiplist/skiplist_range_lock.hpp"
#include "sluice/sync/skiplist/skiplist_testing.hpp"
#include "tests/interleave/scheduler.hpp"

// Scenarios for locks on ranges of twenty bytes, each of which records its holder.

namespace sluice::interleave {

class exclusive_users : public scenario {
public:
    std::string verdict() override {
        return is_violated_ ? "two threads held the same byte at once" : verdict_of_this();
    }

protected:
    [[nodiscard]] virtual std::string verdict_of_this() { return ""; }

    void enter(const sync::byte_range& where) {
        for (std::uint64_t at = where.first(); at <= where.last(); ++at)
            is_violated_ = ++bytes_[at] != 1 or is_violated_;
    }
    void leave(const sync::byte_range& where) {
        for (std::uint64_t at = where.first(); at <= where.last(); ++at)
            --bytes_[at];
    }
    void use(const sync::byte_range& where) {
        enter(where);
        step();
        leave(where);
    }

private:
    std::array<int, 20> bytes_{};
    bool is_violated_ = false;
};

/// Threads that use the skip list itself, and choose the heights of their towers.
template <class Steps>
class list_users : public exclusive_users {
protected:
    using pool = sync::skiplist::node_pool<scheduled_atomics>;
    using list = sync::skiplist::range_skiplist<scheduled_atomics, Steps>;
    using entry = typename list::entry;

    [[nodiscard]] entry made(unsigned height) {
        entry fresh{.own = nodes.take()};
        fresh.own.height = height;
        return fresh;
    }
    [[nodiscard]] bool insert(entry& fresh, const sync::byte_range& where) {
        const bool is_in = ranges.insert(fresh, where).what == nullptr;
        if (is_in) enter(where);
        return is_in;
    }
    void erase(const entry& held, const sync::byte_range& where) {
        leave(where);
        ranges.erase(held, [] {});
    }
    void insert_and_erase(entry& fresh, const sync::byte_range& where) {
        if (not insert(fresh, where)) return;
        step();
        erase(fresh, where);
    }
    /// Returns whether each of these nodes, and no other, is linked on every level below its
    /// height.
    [[nodiscard]] bool holds_exactly(const std::vector<entry>& held) {
        for (unsigned level = 0; level != 4; ++level) {
            std::vector<unsigned> linked;
            ranges.for_each_linked(level, [&](unsigned number) { linked.push_back(number); });
            std::set<unsigned> expected;
            for (const entry& one : held)
                if (one.own.height > level) expected.insert(one.own.number);
            if (linked.size() != expected.size() or std::set(linked.begin(), linked.end()) != expected)
                return false;
        }
        return true;
    }

    pool nodes{{.nodes_reserved = 6}};
    list ranges{nodes};
};

/// Threads that use the whole lock.
template <class Steps>
class lock_users : public exclusive_users {
protected:
    using lock_type = sync::basic_skiplist_range_lock<scheduled_atomics, Steps>;
    using guard = typename lock_type::guard;

    std::string verdict_of_this() override {
        if (not lock.try_lock(sync::byte_range::whole())) return "a range is still locked";
        return lock.nodes() > nodes_max() ? "a node is lost" : "";
    }
    /// Returns the largest number of nodes that the threads use at once.
    [[nodiscard]] virtual std::size_t nodes_max() const { return 3; }

    void lock_and_use(const sync::byte_range& where) {
        const guard held = lock.lock(where);
        use(where);
    }
    void use_if_free(const sync::byte_range& where) {
        const guard held = lock.try_lock(where);
        if (held) use(where);
    }

    lock_type lock{{.ranges_reserved = 2}};
};

}  // namespace sluice::interleave
