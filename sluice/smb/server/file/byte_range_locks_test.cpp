#include "sluice/smb/server/file/byte_range_locks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/open/open.hpp"

namespace sluice::smb::server {

namespace {

using range = byte_range_locks::range;
using wire::nt_status;

constexpr std::uint64_t far_end = ~std::uint64_t{0};

class byte_range_locks_test : public testing::Test {
protected:
    [[nodiscard]] bool exclusive(const open& by, range where) {
        return locks.try_lock({.owner = &by, .where = where, .is_exclusive = true});
    }
    [[nodiscard]] bool shared(const open& by, range where) {
        return locks.try_lock({.owner = &by, .where = where, .is_exclusive = false});
    }

    std::unique_ptr<io::io_multiplexer> loop = io::make_epoll_multiplexer().value();
    byte_range_locks locks;
    open a;
    open b;
};

TEST_F(byte_range_locks_test, an_exclusive_lock_conflicts_with_every_open_its_owner_too) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    EXPECT_FALSE(exclusive(b, {9, 1}));
    EXPECT_FALSE(exclusive(a, {9, 1}));
    EXPECT_FALSE(shared(b, {0, 1}));
    EXPECT_TRUE(exclusive(b, {10, 1}));
}

TEST_F(byte_range_locks_test, an_owner_stacks_shared_locks_on_its_exclusive_one) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    EXPECT_TRUE(shared(a, {0, 10}));
    ASSERT_TRUE(locks.unlock(a, {0, 10}));
    EXPECT_TRUE(shared(b, {0, 10})) << "the exclusive one is released first";
    EXPECT_FALSE(exclusive(a, {0, 10}));
}

TEST_F(byte_range_locks_test, ranges_reach_to_the_last_of_all_bytes_and_no_further) {
    EXPECT_TRUE(byte_range_locks::is_lockable({far_end, 1}));
    EXPECT_FALSE(byte_range_locks::is_lockable({far_end, 2}));
    EXPECT_TRUE(byte_range_locks::is_lockable({0, far_end}));
    EXPECT_TRUE(byte_range_locks::is_lockable({far_end, 0}));
    ASSERT_TRUE(exclusive(a, {far_end, 1}));
    EXPECT_FALSE(exclusive(b, {1, far_end}));
    EXPECT_TRUE(exclusive(b, {0, far_end}));
}

TEST_F(byte_range_locks_test, no_bytes_may_always_be_read_and_written) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    EXPECT_TRUE(locks.allows_read(b, {5, 0}));
    EXPECT_TRUE(locks.allows_write(b, {5, 0}));
    EXPECT_FALSE(locks.allows_read(b, {5, 1}));
}

TEST_F(byte_range_locks_test, what_an_owner_shares_it_cannot_write_either) {
    ASSERT_TRUE(shared(a, {0, 10}));
    EXPECT_TRUE(locks.allows_read(b, {0, 10}));
    EXPECT_FALSE(locks.allows_write(a, {9, 2}));
    EXPECT_TRUE(locks.allows_write(a, {10, 2}));
}

TEST_F(byte_range_locks_test, waiters_are_granted_in_order_unless_they_conflict) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    one_shot_event<nt_status> first(*loop);
    one_shot_event<nt_status> second(*loop);
    byte_range_locks::waiter whole{.wanted = {&b, {0, 10}, true}, .granted = &first};
    byte_range_locks::waiter part{.wanted = {&b, {0, 1}, false}, .granted = &second};
    locks.enqueue(whole);
    locks.enqueue(part);
    ASSERT_TRUE(locks.unlock(a, {0, 10}));
    EXPECT_TRUE(first.is_set());
    EXPECT_TRUE(second.is_set()) << "stacked on the first, of the same open";
    EXPECT_EQ(locks.held_by(b), 2U);
}

TEST_F(byte_range_locks_test, a_waiter_is_recorded_with_its_grant) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    one_shot_event<nt_status> granted(*loop);
    lock_sequences requests;
    byte_range_locks::waiter waiting{.wanted = {&b, {0, 10}, true},
                                     .granted = &granted,
                                     .numbered = {.in = &requests, .index = 1, .number = 5}};
    locks.enqueue(waiting);
    EXPECT_FALSE(requests.is_repeated(1, 5));
    ASSERT_TRUE(locks.unlock(a, {0, 10}));
    EXPECT_TRUE(requests.is_repeated(1, 5)) << "before its reply, which may be lost";
}

TEST_F(byte_range_locks_test, a_waiter_that_repeats_another_is_granted_with_it) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    one_shot_event<nt_status> first(*loop);
    one_shot_event<nt_status> again(*loop);
    lock_sequences requests;
    const byte_range_locks::sequence numbered{.in = &requests, .index = 1, .number = 5};
    byte_range_locks::waiter waiting{.wanted = {&b, {0, 10}, true}, .granted = &first, .numbered = numbered};
    byte_range_locks::waiter repeated{.wanted = {&b, {0, 10}, true}, .granted = &again, .numbered = numbered};
    locks.enqueue(waiting);
    locks.enqueue(repeated);
    ASSERT_TRUE(locks.unlock(a, {0, 10}));
    EXPECT_TRUE(first.is_set());
    EXPECT_TRUE(again.is_set()) << "it would wait for its own lock";
    EXPECT_EQ(locks.held_by(b), 1U);
    EXPECT_EQ(locks.claims_of(b), 1U);
}

TEST_F(byte_range_locks_test, a_waiter_does_not_conflict_with_others) {
    open c;
    ASSERT_TRUE(exclusive(a, {0, 1}));
    ASSERT_TRUE(exclusive(a, {8, 1}));
    one_shot_event<nt_status> first(*loop);
    one_shot_event<nt_status> second(*loop);
    byte_range_locks::waiter whole{.wanted = {&b, {0, 10}, true}, .granted = &first};
    byte_range_locks::waiter end{.wanted = {&c, {8, 2}, true}, .granted = &second};
    locks.enqueue(whole);
    locks.enqueue(end);
    EXPECT_TRUE(exclusive(c, {4, 1})) << "the waiter came first, but holds nothing";
    ASSERT_TRUE(locks.unlock(a, {8, 1}));
    EXPECT_TRUE(second.is_set()) << "it came later, but conflicts with no held lock";
    ASSERT_TRUE(locks.unlock(a, {0, 1}));
    ASSERT_TRUE(locks.unlock(c, {8, 2}));
    EXPECT_FALSE(first.is_set()) << "the later lock conflicts now";
    ASSERT_TRUE(locks.unlock(c, {4, 1}));
    EXPECT_EQ(first.value(), nt_status::success);
}

TEST_F(byte_range_locks_test, several_are_locked_together_or_not_at_all) {
    ASSERT_TRUE(exclusive(b, {20, 1}));
    const std::array<byte_range_locks::lock, 3> wanted{
        {{&a, {0, 10}, true}, {&a, {0, 10}, false}, {&a, {20, 1}, true}}};
    EXPECT_FALSE(locks.try_lock_all(wanted));
    EXPECT_EQ(locks.held_by(a), 0U);
    EXPECT_TRUE(locks.try_lock_all(std::span(wanted).first(2))) << "the refused locks were all released";
    EXPECT_EQ(locks.held_by(a), 2U);
    EXPECT_FALSE(
        locks.try_lock_all(std::array<byte_range_locks::lock, 2>{{{&b, {30, 5}, true}, {&b, {34, 1}, true}}}))
        << "they conflict with each other";
    EXPECT_TRUE(exclusive(b, {30, 5}));
}

TEST_F(byte_range_locks_test, a_waiter_counts_as_a_lock_that_will_be_held) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    ASSERT_TRUE(shared(b, {10, 1}));
    one_shot_event<nt_status> granted(*loop);
    byte_range_locks::waiter waiting{.wanted = {&b, {0, 10}, true}, .granted = &granted};
    locks.enqueue(waiting);
    EXPECT_EQ(locks.claims_of(b), 2U);
    locks.forget(waiting);
    EXPECT_EQ(locks.claims_of(b), 1U);
    locks.enqueue(waiting);
    ASSERT_TRUE(locks.unlock(a, {0, 10}));
    EXPECT_EQ(locks.claims_of(b), 2U);
    EXPECT_EQ(locks.held_by(b), 2U);
}

TEST_F(byte_range_locks_test, a_cancelled_waiter_is_not_granted_a_lock) {
    ASSERT_TRUE(exclusive(a, {0, 10}));
    one_shot_event<nt_status> granted(*loop);
    byte_range_locks::waiter waiting{.wanted = {&b, {0, 10}, true}, .granted = &granted};
    locks.enqueue(waiting);
    granted.set(nt_status::cancelled);
    ASSERT_TRUE(locks.unlock(a, {0, 10}));
    EXPECT_EQ(locks.held_by(b), 0U);
    locks.forget(waiting);
    EXPECT_TRUE(locks.is_empty());
}

TEST_F(byte_range_locks_test, closing_an_open_ends_its_waiters_and_serves_the_others) {
    open c;
    ASSERT_TRUE(exclusive(a, {0, 10}));
    one_shot_event<nt_status> of_a(*loop);
    one_shot_event<nt_status> of_c(*loop);
    byte_range_locks::waiter own{.wanted = {&a, {0, 1}, true}, .granted = &of_a};
    byte_range_locks::waiter others{.wanted = {&c, {0, 1}, true}, .granted = &of_c};
    locks.enqueue(own);
    locks.enqueue(others);
    locks.release_all(a);
    EXPECT_EQ(*of_a.value(), nt_status::range_not_locked);
    EXPECT_EQ(*of_c.value(), nt_status::success);
    EXPECT_EQ(locks.held_by(a), 0U);
    EXPECT_EQ(locks.held_by(c), 1U);
}

// The same as sets of points: byte b is the point 2b + 1, the place in front of it 2b. A range
// covers its bytes and the places between them; one without bytes covers its place.
class model {
public:
    struct entry {
        std::size_t owner;
        range where;
        bool is_exclusive;
    };

    [[nodiscard]] bool try_lock(const entry& wanted) {
        for (const entry& held : held_) {
            if (not meet(held.where, wanted.where)) continue;
            if (wanted.is_exclusive or (held.is_exclusive and held.owner != wanted.owner)) return false;
        }
        held_.push_back(wanted);
        return true;
    }
    /// Returns whether there was one. Grants waiters.
    [[nodiscard]] bool unlock(std::size_t owner, range where) {
        const bool had_it = drop(owner, where);
        if (had_it) serve();
        return had_it;
    }
    void wait(std::size_t place, const entry& wanted) { waiting_.push_back({place, wanted}); }
    void stop_waiting(std::size_t place) {
        std::erase_if(waiting_, [&](const auto& one) { return one.first == place; });
    }
    [[nodiscard]] bool is_waiting(std::size_t place) const {
        return std::ranges::any_of(waiting_, [&](const auto& one) { return one.first == place; });
    }
    void close(std::size_t owner) {
        std::erase_if(held_, [&](const entry& held) { return held.owner == owner; });
        std::erase_if(waiting_, [&](const auto& one) { return one.second.owner == owner; });
        serve();
    }
    [[nodiscard]] bool may(std::size_t who, range where, bool writes) const {
        if (where.length == 0) return true;
        return std::ranges::none_of(held_, [&](const entry& held) {
            if (not meet(held.where, where)) return false;
            if (held.is_exclusive) return held.owner != who;
            return writes;
        });
    }
    [[nodiscard]] std::size_t held_by(std::size_t owner) const {
        return static_cast<std::size_t>(
            std::ranges::count_if(held_, [&](const entry& held) { return held.owner == owner; }));
    }

private:
    static constexpr std::uint64_t points = 64;

    [[nodiscard]] static bool covers(range where, std::uint64_t point) noexcept {
        if (where.length == 0) return point == 2 * where.offset;
        return point > 2 * where.offset and point < 2 * (where.offset + where.length);
    }
    [[nodiscard]] static bool meet(range x, range y) noexcept {
        if (x.length == 0 and y.length == 0) return false;
        for (std::uint64_t point = 0; point != points; ++point)
            if (covers(x, point) and covers(y, point)) return true;
        return false;
    }

    [[nodiscard]] bool drop(std::size_t owner, range where) {
        for (const bool exclusive : {true, false})
            for (auto it = held_.begin(); it != held_.end(); ++it)
                if (it->owner == owner and it->is_exclusive == exclusive and
                    it->where.offset == where.offset and it->where.length == where.length) {
                    held_.erase(it);
                    return true;
                }
        return false;
    }
    void serve() {
        std::erase_if(waiting_, [&](const auto& one) { return try_lock(one.second); });
    }

    std::vector<entry> held_;
    std::vector<std::pair<std::size_t, entry>> waiting_;
};

TEST_F(byte_range_locks_test, a_long_history_is_that_of_a_model_on_single_points) {
    struct waiting_request {
        explicit waiting_request(io::io_multiplexer& on, const byte_range_locks::lock& wanted)
            : granted(on), waiter{.wanted = wanted, .granted = &granted} {}
        one_shot_event<nt_status> granted;
        byte_range_locks::waiter waiter;
    };
    const std::uint32_t seed = std::random_device{}();
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint64_t bound) { return random() % bound; };
    std::array<open, 3> owners;
    std::array<std::unique_ptr<waiting_request>, 4> waiting;
    model expected;
    for (int step = 0; step != 20'000; ++step) {
        const std::size_t who = below(owners.size());
        const range where{.offset = below(12), .length = below(6)};
        const bool flag = below(2) == 0;
        const byte_range_locks::lock wanted{.owner = &owners[who], .where = where, .is_exclusive = flag};
        const model::entry same{.owner = who, .where = where, .is_exclusive = flag};
        const std::size_t place = below(waiting.size());
        const std::uint64_t what = below(100);
        if (what < 30) {
            ASSERT_EQ(locks.try_lock(wanted), expected.try_lock(same)) << "step " << step;
        } else if (what < 45 and waiting[place] == nullptr) {
            const bool is_granted = locks.try_lock(wanted);
            ASSERT_EQ(is_granted, expected.try_lock(same)) << "step " << step;
            if (is_granted) continue;
            waiting[place] = std::make_unique<waiting_request>(*loop, wanted);
            locks.enqueue(waiting[place]->waiter);
            expected.wait(place, same);
        } else if (what < 48 and waiting[place] != nullptr) {
            waiting[place]->granted.set(nt_status::cancelled);  // unless it is over
            locks.forget(waiting[place]->waiter);
            waiting[place].reset();
            expected.stop_waiting(place);
        } else if (what < 80) {
            ASSERT_EQ(locks.unlock(owners[who], where), expected.unlock(who, where)) << "step " << step;
        } else if (what < 98) {
            ASSERT_EQ(flag ? locks.allows_write(owners[who], where) : locks.allows_read(owners[who], where),
                      expected.may(who, where, flag))
                << "step " << step;
        } else {
            locks.release_all(owners[who]);
            expected.close(who);
        }
        ASSERT_EQ(locks.held_by(owners[who]), expected.held_by(who)) << "step " << step;
        for (std::size_t i = 0; i != waiting.size(); ++i)
            if (waiting[i] != nullptr)
                ASSERT_EQ(not waiting[i]->granted.is_set(), expected.is_waiting(i)) << "step " << step;
    }
    for (const auto& one : waiting)
        if (one != nullptr) locks.forget(one->waiter);
    for (const open& one : owners)
        locks.release_all(one);
    EXPECT_TRUE(locks.is_empty());
}

}  // namespace

}  // namespace sluice::smb::server
