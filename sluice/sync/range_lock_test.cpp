#include "sluice/sync/range_lock.hpp"
#include "sluice/sync/range_lock_awaiter_testing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <coroutine>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sync/range_lock_testing.hpp"

namespace sluice::sync {
namespace {

using remembered = basic_remembered_request<real_atomics>;

TEST(range_lock, lets_readers_share_and_writers_exclude_all_others) {
    range_lock lock;
    const range_guard reader = lock.try_lock(shared(0, 9));
    EXPECT_TRUE(reader);
    EXPECT_TRUE(lock.try_lock(shared(5, 20)));
    EXPECT_FALSE(lock.try_lock(exclusive(9, 20)));
    EXPECT_TRUE(lock.try_lock(exclusive(10, 20)));
}

TEST(range_lock, takes_the_first_and_the_last_of_all_bytes_and_one_byte_and_equal_ranges_again) {
    range_lock lock;
    for (int round = 0; round != 2; ++round) {
        EXPECT_TRUE(lock.try_lock({.where = byte_range::whole()}));
        EXPECT_TRUE(lock.try_lock(exclusive(0, 10)));
        EXPECT_TRUE(lock.try_lock({.where = byte_range::from(5)}));
        EXPECT_TRUE(lock.try_lock(exclusive(7, 7)));
    }
    const range_guard one = lock.try_lock(shared(3, 4));
    const range_guard same = lock.try_lock(shared(3, 4));
    EXPECT_TRUE(one);
    EXPECT_TRUE(same);
}

TEST(range_lock, stacks_shared_locks_of_an_owner_on_its_exclusive_one_and_nothing_else) {
    range_lock lock;
    const int owners[2] = {};
    lock_args mine = exclusive(0, 9);
    mine.owner = &owners[0];
    const range_guard held = lock.try_lock(mine);
    EXPECT_FALSE(lock.try_lock(mine));
    mine.mode = lock_mode::shared;
    EXPECT_TRUE(lock.try_lock(mine));
    mine.owner = &owners[1];
    EXPECT_FALSE(lock.try_lock(mine));
}

TEST(range_lock, lets_no_request_overtake_an_earlier_waiting_one) {
    range_lock lock;
    range_guard held = lock.try_lock(exclusive(0, 9));
    remembered waiting;
    EXPECT_FALSE(lock.lock_async(waiting, exclusive(5, 14)));
    EXPECT_FALSE(lock.try_lock(exclusive(12, 20))) << "free, but requested before";
    EXPECT_TRUE(lock.try_lock(exclusive(15, 20)));
    held.unlock();
    EXPECT_EQ(waiting.completions, 1);
    EXPECT_TRUE(waiting.is_granted);
    EXPECT_FALSE(lock.try_lock(exclusive(12, 20)));
    EXPECT_TRUE(lock.try_lock(exclusive(0, 4)));
    waiting.take().unlock();
    EXPECT_TRUE(lock.try_lock(exclusive(0, 20)));
}

TEST(range_lock, times_out_at_the_deadline_and_leaves_no_request) {
    range_lock lock;
    range_guard held = lock.try_lock(exclusive(0, 9));
    EXPECT_FALSE(lock.try_lock_for(exclusive(5, 14), std::chrono::milliseconds(2)));
    EXPECT_FALSE(lock.try_lock_until(exclusive(5, 14), std::chrono::steady_clock::now()));
    EXPECT_TRUE(lock.try_lock(exclusive(10, 14)));
}

TEST(range_lock, ends_waits_on_demand_and_grants_later_requests) {
    range_lock lock;
    const range_guard held = lock.try_lock(exclusive(0, 9));
    remembered waiting;
    remembered behind;
    EXPECT_FALSE(lock.lock_async(waiting, exclusive(5, 14)));
    EXPECT_FALSE(lock.lock_async(behind, exclusive(12, 20)));
    EXPECT_TRUE(lock.cancel(waiting));
    EXPECT_EQ(waiting.completions, 1);
    EXPECT_FALSE(waiting.is_granted);
    EXPECT_FALSE(waiting.take());
    EXPECT_TRUE(behind.is_granted);
    EXPECT_FALSE(lock.cancel(behind)) << "it was granted";
    EXPECT_TRUE(behind.take());
}

TEST(range_lock, ends_all_waits_of_an_owner_without_granting_one_through_another) {
    range_lock lock;
    const int owner = 0;
    const range_guard held = lock.try_lock(exclusive(0, 9));
    std::array<remembered, 3> requests;
    lock_args wanted = exclusive(5, 14);
    wanted.owner = &owner;
    EXPECT_FALSE(lock.lock_async(requests[0], wanted));
    wanted.where = byte_range::between({.first = 12, .last = 20});
    EXPECT_FALSE(lock.lock_async(requests[1], wanted));
    wanted.owner = nullptr;
    wanted.where = byte_range::between({.first = 18, .last = 30});
    EXPECT_FALSE(lock.lock_async(requests[2], wanted));
    EXPECT_EQ(lock.cancel_all(&owner), 2U);
    EXPECT_EQ(requests[0].completions, 1);
    EXPECT_EQ(requests[1].completions, 1);
    EXPECT_FALSE(requests[0].is_granted or requests[1].is_granted);
    EXPECT_TRUE(requests[2].is_granted);
    EXPECT_TRUE(requests[2].take());
    EXPECT_EQ(lock.cancel_all(&owner), 0U);
}

TEST(range_lock, ends_a_wait_that_only_another_wait_of_the_same_owner_kept_from_being_granted) {
    range_lock lock;
    const int owner = 0;
    const range_guard held = lock.try_lock(exclusive(15, 25));
    std::array<remembered, 2> requests;
    lock_args wanted = exclusive(12, 20);
    wanted.owner = &owner;
    EXPECT_FALSE(lock.lock_async(requests[0], wanted));
    wanted.where = byte_range::between({.first = 8, .last = 13});
    EXPECT_FALSE(lock.lock_async(requests[1], wanted));
    EXPECT_EQ(lock.cancel_all(&owner), 2U);
    for (const remembered& one : requests) {
        EXPECT_EQ(one.completions, 1);
        EXPECT_FALSE(one.is_granted);
    }
    EXPECT_TRUE(lock.try_lock(exclusive(0, 14)));
}

TEST(range_lock, takes_several_ranges_or_none) {
    range_lock lock;
    std::array<range_guard, 2> guards;
    const std::array apart{exclusive(0, 4), exclusive(10, 14)};
    EXPECT_TRUE(lock.try_lock_all(apart, guards));
    EXPECT_FALSE(lock.try_lock(shared(12, 12)));
    std::array<range_guard, 2> more;
    const std::array half_taken{exclusive(20, 24), exclusive(4, 5)};
    EXPECT_FALSE(lock.try_lock_all(half_taken, more));
    EXPECT_FALSE(more[0]);
    const std::array overlapping{exclusive(20, 24), exclusive(24, 25)};
    EXPECT_FALSE(lock.try_lock_all(overlapping, more)) << "they conflict";
    EXPECT_TRUE(lock.try_lock(exclusive(20, 30)));
}

TEST(range_lock, downgrades_shrinks_and_splits_for_waiting_requests) {
    range_lock lock;
    range_guard held = lock.try_lock(exclusive(0, 9));
    remembered reader;
    remembered writer;
    remembered left;
    EXPECT_FALSE(lock.lock_async(reader, shared(0, 1)));
    EXPECT_FALSE(lock.lock_async(writer, exclusive(8, 9)));
    held.downgrade();
    EXPECT_TRUE(reader.is_granted);
    EXPECT_FALSE(writer.is_granted);
    held.shrink(byte_range::between({.first = 0, .last = 7}));
    EXPECT_TRUE(writer.is_granted);
    EXPECT_FALSE(lock.lock_async(left, exclusive(2, 5)));
    range_guard rest;
    held.split(4, rest);
    held.unlock();
    EXPECT_FALSE(left.is_granted) << "the other part is held";
    rest.unlock();
    EXPECT_TRUE(left.is_granted);
    for (remembered* one : {&reader, &writer, &left})
        EXPECT_TRUE(one->take());
}

TEST(range_lock, upgrades_a_reader_only_without_other_holders) {
    range_lock lock;
    range_guard held = lock.try_lock(shared(0, 9));
    {
        const range_guard other = lock.try_lock(shared(9, 12));
        EXPECT_FALSE(held.try_upgrade());
    }
    EXPECT_TRUE(held.try_upgrade());
    EXPECT_FALSE(lock.try_lock(shared(9, 9)));
}

TEST(range_lock, reports_conflicts_without_a_request) {
    range_lock lock;
    const int owner = 0;
    lock_args mine = shared(5, 9);
    mine.owner = &owner;
    const range_guard held = lock.try_lock(mine);
    remembered waiting;
    EXPECT_FALSE(lock.lock_async(waiting, exclusive(7, 20)));
    EXPECT_FALSE(lock.first_conflict(shared(0, 6)));
    const auto first = lock.first_conflict(exclusive(0, 30));
    ASSERT_TRUE(first);
    EXPECT_EQ(first->owner, &owner);
    EXPECT_EQ(first->where, mine.where);
    EXPECT_TRUE(first->is_held);
    std::string seen;
    lock.for_each_conflict(exclusive(0, 30), [&](const lock_conflict& one) {
        seen += one.mode == lock_mode::shared ? 's' : 'x';
        seen += one.is_held ? 'h' : 'w';
        return true;
    });
    EXPECT_EQ(seen, "shxw");
    EXPECT_TRUE(lock.cancel(waiting));
}

TEST(range_lock, without_bytes_at_the_beginning_conflicts_with_no_request) {
    range_lock lock;
    const range_guard all = lock.try_lock({.where = byte_range::whole()});
    range_guard nothing = lock.try_lock({.where = byte_range::none_at(0)});
    EXPECT_TRUE(nothing);
    const range_guard moved = std::move(nothing);
    EXPECT_TRUE(moved);
    EXPECT_FALSE(lock.try_lock({.where = byte_range::none_at(1)}));
}

TEST(range_lock, takes_memory_for_buckets_only_where_it_may) {
    range_lock spread;
    range_lock still({.spreads = false});
    const range_guard here = spread.lock(exclusive(0, 9));
    const range_guard there = still.lock(exclusive(0, 9));
    for (std::uint32_t round = 0; round != 2 * range_lock_tuning::contention_max; ++round) {
        EXPECT_TRUE(spread.try_lock(exclusive(10, 19)));
        EXPECT_TRUE(still.try_lock(exclusive(10, 19)));
    }
    EXPECT_NE(spread.bytes_allocated(), 0U);
    EXPECT_EQ(still.bytes_allocated(), 0U);
    EXPECT_FALSE(spread.try_lock(exclusive(9, 10)));
}

TEST(range_lock, lets_a_waiting_request_be_overtaken_up_to_the_limit) {
    range_lock lock({.overtakes_max = 2});
    range_guard held = lock.try_lock(exclusive(0, 4));
    remembered wide;
    EXPECT_FALSE(lock.lock_async(wide, exclusive(3, 9)));
    for (int i = 0; i != 2; ++i)
        EXPECT_TRUE(lock.try_lock(exclusive(7, 8))) << "it is not held";
    EXPECT_FALSE(lock.try_lock(exclusive(7, 8))) << "it was overtaken twice";
    EXPECT_FALSE(lock.try_lock(exclusive(0, 0)));
    held.unlock();
    EXPECT_TRUE(wide.is_granted);
    wide.take().unlock();
    EXPECT_TRUE(lock.try_lock(exclusive(7, 8)));
}

TEST(range_lock, makes_an_overtaken_request_wait_for_the_one_that_overtook_it) {
    range_lock lock({.overtakes_max = range_lock_options::without_limit});
    range_guard held = lock.try_lock(exclusive(0, 4));
    remembered wide;
    EXPECT_FALSE(lock.lock_async(wide, exclusive(3, 9)));
    range_guard overtaker = lock.try_lock(exclusive(7, 8));
    ASSERT_TRUE(overtaker);
    held.unlock();
    EXPECT_FALSE(wide.is_granted);
    overtaker.unlock();
    EXPECT_TRUE(wide.is_granted);
    EXPECT_TRUE(wide.take());
}

TEST(range_lock, grants_released_bytes_to_requests_after_one_that_still_waits) {
    range_lock lock({.overtakes_max = 1});
    const range_guard stays = lock.try_lock(exclusive(0, 1));
    range_guard goes = lock.try_lock(exclusive(7, 8));
    remembered wide;
    remembered narrow;
    EXPECT_FALSE(lock.lock_async(wide, exclusive(1, 9)));
    EXPECT_FALSE(lock.lock_async(narrow, exclusive(8, 9)));
    goes.unlock();
    EXPECT_TRUE(narrow.is_granted);
    EXPECT_FALSE(wide.is_granted);
    EXPECT_TRUE(lock.cancel(wide));
    EXPECT_TRUE(narrow.take());
}

TEST(range_lock, lets_a_request_that_was_overtaken_overtake_another) {
    range_lock lock({.overtakes_max = 1});
    const range_guard stays = lock.try_lock(exclusive(0, 1));
    range_guard leaves = lock.try_lock(exclusive(8, 8));
    remembered first;
    remembered second;
    EXPECT_FALSE(lock.lock_async(first, exclusive(1, 5)));
    EXPECT_FALSE(lock.lock_async(second, exclusive(5, 9)));
    EXPECT_TRUE(lock.try_lock(exclusive(9, 9)));
    EXPECT_FALSE(lock.try_lock(exclusive(9, 9))) << "the second was overtaken once";
    leaves.unlock();
    EXPECT_TRUE(second.is_granted);
    EXPECT_FALSE(first.is_granted);
    EXPECT_TRUE(lock.cancel(first));
    EXPECT_TRUE(second.take());
}

TEST(range_lock, lets_an_owner_read_a_range_while_it_waits_to_write_it) {
    range_lock lock;
    const int owner = 0;
    range_guard held = lock.try_lock(exclusive(0, 9));
    remembered writer;
    lock_args wanted = exclusive(5, 14);
    wanted.owner = &owner;
    EXPECT_FALSE(lock.lock_async(writer, wanted));
    wanted.where = byte_range::between({.first = 12, .last = 14});
    wanted.mode = lock_mode::shared;
    const range_guard reader = lock.try_lock(wanted);
    EXPECT_TRUE(reader) << "never waits for its own owner's exclusive lock";
    held.unlock();
    EXPECT_TRUE(writer.is_granted) << "does not wait for later requests";
    EXPECT_TRUE(writer.take());
}

TEST(range_lock_death, stops_the_program_if_a_lock_is_destroyed_before_its_guards_in_any_form) {
    const auto go_with_guards = [](std::size_t count) {
        auto lock = std::make_unique<basic_range_lock<hot_atomics>>();
        std::vector<basic_range_guard<hot_atomics>> held(count);
        for (std::size_t i = 0; i != count; ++i)
            held[i] = lock->lock(exclusive(i * 10, i * 10 + 9));
        lock.reset();
    };
    for (const std::size_t count : {1U, 2U, 5U})
        EXPECT_DEATH(go_with_guards(count), "before") << count << " guards";
}

// A coroutine that runs at once and destroys itself at its end.
struct detached {
    struct promise_type {
        [[nodiscard]] detached get_return_object() const noexcept { return {}; }
        [[nodiscard]] std::suspend_never initial_suspend() const noexcept { return {}; }
        [[nodiscard]] std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

detached hold_for_a_moment(range_lock& lock, lock_args wanted, std::string& story, char name) {
    range_guard held = co_await awaited_lock(lock, wanted);
    story += held ? name : '-';
}

TEST(range_lock, suspends_a_coroutine_until_it_is_granted_or_cancelled) {
    range_lock lock;
    const int owner = 0;
    std::string story;
    {
        const range_guard held = lock.try_lock(exclusive(0, 9));
        hold_for_a_moment(lock, exclusive(20, 29), story, 'a');
        EXPECT_EQ(story, "a");
        hold_for_a_moment(lock, exclusive(5, 14), story, 'b');
        lock_args mine = exclusive(0, 1);
        mine.owner = &owner;
        hold_for_a_moment(lock, mine, story, 'c');
        EXPECT_EQ(lock.cancel_all(&owner), 1U);
        EXPECT_EQ(story, "a-");
    }
    EXPECT_EQ(story, "a-b");
}

// The specification of the lock, in the simplest form: a list of all requests in order of arrival.
class model {
public:
    struct request {
        std::uint64_t id = 0;
        lock_args args;
        bool is_held = false;
    };

    [[nodiscard]] static bool is_in_the_way(const lock_args& later, const lock_args& earlier) {
        const bool both_read = later.mode == lock_mode::shared and earlier.mode == lock_mode::shared;
        const bool stacks =
            later.mode == lock_mode::shared and later.owner != nullptr and later.owner == earlier.owner;
        return not both_read and not stacks and overlap(later.where, earlier.where);
    }
    [[nodiscard]] bool is_free(const lock_args& wanted, std::size_t before) const {
        return std::none_of(requests.begin(), requests.begin() + static_cast<std::ptrdiff_t>(before),
                            [&](const request& one) { return is_in_the_way(wanted, one.args); });
    }
    void await_outcome() {
        for (std::size_t i = 0; i != requests.size(); ++i)
            if (not requests[i].is_held) requests[i].is_held = is_free(requests[i].args, i);
    }
    [[nodiscard]] request& find(std::uint64_t id) { return *std::ranges::find(requests, id, &request::id); }

    std::deque<request> requests;

private:
    // By the definition: a byte in common, or a < x < b.
    [[nodiscard]] static bool overlap(const byte_range& a, const byte_range& b) {
        using wide = unsigned __int128;
        const auto begin = [](const byte_range& r) { return wide(r.first()); };
        const auto end = [](const byte_range& r) {
            return wide(r.first()) + (r.is_empty() ? 0 : wide(r.last()) - r.first() + 1);
        };
        if (a.is_empty() and b.is_empty()) return false;
        if (a.is_empty()) return begin(b) < begin(a) and begin(a) < end(b);
        if (b.is_empty()) return begin(a) < begin(b) and begin(b) < end(a);
        return begin(a) < end(b) and begin(b) < end(a);
    }
};

// The lock and its model, with the same operations.
template <class Atomics>
class pair_under_test {
public:
    using lock_type = basic_range_lock<Atomics>;
    using guard_type = basic_range_guard<Atomics>;
    using request_type = basic_remembered_request<Atomics>;

    explicit pair_under_test(std::uint64_t seed) : random_(seed) {}
    ~pair_under_test() {
        for (held& one : held_)
            if (one.request and not one.guard and not one.request->completions)
                (void)lock_.cancel(*one.request);
    }

    void step() {
        switch (random_.below(10)) {
            case 0:
            case 1:
            case 2:
                return ask();
            case 3:
                return try_one();
            case 4:
                return change();
            case 5:
                return cancel_one();
            case 6:
                return look();
            default:
                return release();
        }
    }

    // Every request is held by the lock if and only if the model holds it.
    void compare() {
        expected_.await_outcome();
        for (held& one : held_) {
            const bool is_held = one.guard or one.request->completions != 0;
            ASSERT_EQ(is_held, expected_.find(one.id).is_held) << "request " << one.id;
            if (not one.guard and is_held) one.guard = one.request->take();
        }
    }

private:
    struct held {
        std::uint64_t id = 0;
        guard_type guard;
        std::unique_ptr<request_type> request;
    };

    [[nodiscard]] lock_args draw() {
        const std::uint64_t first =
            random_.below(5) == 0 ? ~std::uint64_t{0} - random_.below(4) : random_.below(30);
        lock_args wanted{.where = byte_range::of({.offset = first, .length = random_.below(8)})
                                      .value_or(byte_range::from(first))};
        if (random_.below(20) == 0) wanted.where = byte_range::whole();
        if (random_.below(2) == 0) wanted.mode = lock_mode::shared;
        if (random_.below(2) == 0) wanted.owner = &owners_[random_.below(2)];
        return wanted;
    }
    void add(const lock_args& args, held one, bool is_held) {
        one.id = ++ids_;
        expected_.requests.push_back({.id = one.id, .args = args, .is_held = is_held});
        held_.push_back(std::move(one));
    }
    [[nodiscard]] held* draw_one(bool is_held) {
        std::vector<held*> fitting;
        for (held& one : held_)
            if (static_cast<bool>(one.guard) == is_held) fitting.push_back(&one);
        return fitting.empty() ? nullptr : fitting[random_.below(fitting.size())];
    }
    void forget(held& one) {
        const std::uint64_t id = one.id;
        std::erase_if(expected_.requests, [&](const model::request& each) { return each.id == id; });
        std::erase_if(held_, [&](const held& each) { return each.id == id; });
    }

    void ask() {
        const lock_args wanted = draw();
        const bool is_free = expected_.is_free(wanted, expected_.requests.size());
        held one{.id = 0, .guard = {}, .request = std::make_unique<request_type>()};
        ASSERT_EQ(lock_.lock_async(*one.request, wanted), is_free);
        if (is_free) one.guard = one.request->take();
        add(wanted, std::move(one), is_free);
    }
    void try_one() {
        const lock_args wanted = draw();
        const bool is_free = expected_.is_free(wanted, expected_.requests.size());
        guard_type got = lock_.try_lock(wanted);
        ASSERT_EQ(static_cast<bool>(got), is_free);
        if (is_free) add(wanted, {.id = 0, .guard = std::move(got), .request = nullptr}, true);
    }
    void release() {
        held* const one = draw_one(true);
        if (one == nullptr) return;
        one->guard.unlock();
        forget(*one);
    }
    void cancel_one() {
        held* const one = draw_one(false);
        if (one == nullptr) return;
        ASSERT_TRUE(lock_.cancel(*one->request));
        forget(*one);
    }
    void change() {
        held* const one = draw_one(true);
        if (one == nullptr) return;
        lock_args& args = expected_.find(one->id).args;
        const byte_range where = args.where;
        const bool is_divisible = not where.is_empty() and where.first() != where.last();
        if (random_.below(4) == 0) {
            one->guard.downgrade();
            args.mode = lock_mode::shared;
        } else if (random_.below(3) == 0) {
            const bool is_alone = std::ranges::none_of(expected_.requests, [&](const model::request& other) {
                const lock_args writer{.where = where};
                const lock_args anything{.where = other.args.where};
                return other.id != one->id and model::is_in_the_way(writer, anything);
            });
            ASSERT_EQ(one->guard.try_upgrade(), is_alone);
            if (is_alone) args.mode = lock_mode::exclusive;
        } else if (is_divisible and random_.below(2) == 0) {
            const byte_range kept = byte_range::between({.first = where.first() + 1, .last = where.last()});
            one->guard.shrink(kept);
            args.where = kept;
        } else if (is_divisible) {
            split(*one, args);
        }
    }
    void split(held& one, lock_args& args) {
        const std::uint64_t at = args.where.first() + 1;
        guard_type rest;
        one.guard.split(at, rest);
        lock_args other = args;
        other.where = byte_range::between({.first = at, .last = args.where.last()});
        args.where = byte_range::between({.first = args.where.first(), .last = at - 1});
        // As old as the part it came from: directly after it.
        const auto place = std::ranges::find(expected_.requests, one.id, &model::request::id) + 1;
        expected_.requests.insert(place, {.id = ++ids_, .args = other, .is_held = true});
        held_.push_back({.id = ids_, .guard = std::move(rest), .request = nullptr});
    }
    void look() {
        const lock_args wanted = draw();
        std::size_t count = 0;
        lock_.for_each_conflict(wanted, [&](const lock_conflict&) {
            ++count;
            return true;
        });
        ASSERT_EQ(count, static_cast<std::size_t>(
                             std::ranges::count_if(expected_.requests, [&](const model::request& one) {
                                 return model::is_in_the_way(wanted, one.args);
                             })));
    }

    seeded_random random_;
    const int owners_[2] = {};
    lock_type lock_;
    model expected_;
    std::vector<held> held_;
    std::uint64_t ids_ = 0;
};

template <class Atomics>
void expect_what_the_model_says() {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        pair_under_test<Atomics> both(seed);
        for (int step = 0; step != 1500; ++step) {
            both.step();
            both.compare();
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

TEST(range_lock, does_the_same_as_a_list_of_all_requests_in_order) {
    expect_what_the_model_says<real_atomics>();
}

TEST(range_lock, does_so_while_it_constantly_changes_its_form) {
    expect_what_the_model_says<hot_atomics>();
}

}  // namespace
}  // namespace sluice::sync
