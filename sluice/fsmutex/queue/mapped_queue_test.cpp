#include "sluice/fsmutex/queue/mapped_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice::fsmutex {
namespace {

constexpr std::uint64_t entities = 5;

// A model that compares each request with all earlier ones. The queue must agree with it.
struct model {
    struct request {
        std::uint32_t number;
        std::uint32_t instance;
        std::vector<entity> wanted;
    };
    std::list<request> all;  // in order of arrival

    [[nodiscard]] bool is_granted(const request& one) const {
        for (const request& earlier : all) {
            if (&earlier == &one) return true;
            if (conflict(earlier.wanted, one.wanted)) return false;
        }
        return false;
    }
};

class a_mapped_queue : public testing::Test {
protected:
    std::unique_ptr<mapped::memory> memory = std::make_unique<mapped::memory>();
    mapped_queue queue{*memory};
    mapped_queue::wake_list ignored;

    [[nodiscard]] std::uint32_t enter(std::initializer_list<entity> wanted, std::uint32_t instance = 1) {
        return queue.enter({.instance = instance}, std::vector(wanted)).value().number;
    }
    void leave(std::uint32_t number, bool knows_grant, mapped_queue::wake_list& wake) {
        queue.leave({.number = number, .arrival = queue.request_at(number).arrival.load()}, knows_grant,
                    wake);
    }
    [[nodiscard]] bool is_granted(std::uint32_t number) const {
        return queue.request_at(number).state.load(std::memory_order_relaxed) == mapped::granted;
    }
    [[nodiscard]] bool has_news(std::uint32_t number) const {
        return queue.request_at(number).owner_died != 0;
    }
};

std::vector<entity> draw(seeded_random& random) {
    std::vector<entity> wanted;
    const std::uint64_t many =
        random.below(10) == 0 ? 20 : entities;  // sometimes more than a record can hold
    for (std::uint64_t e = 0; e != many; ++e)
        if (random.below(2) == 0)
            wanted.emplace_back(e, random.below(2) == 0 ? lock_mode::shared : lock_mode::exclusive);
    if (wanted.empty()) wanted.emplace_back(random.below(entities));
    return wanted;
}

TEST_F(a_mapped_queue, grants_the_same_requests_as_a_full_scan_also_after_a_rebuild) {
    for (std::uint64_t seed = 0; seed != 20; ++seed) {
        SCOPED_TRACE(seed);
        seeded_random random(seed);
        model expected;
        for (int step = 0; step != 600; ++step) {
            mapped_queue::wake_list wake;
            if (expected.all.size() < 12 and random.below(2) == 0) {
                const auto wanted = draw(random);
                const bool is_contended = queue.is_contended(wanted);
                const auto number = queue.enter({.instance = 3}, wanted).value().number;
                expected.all.push_back({.number = number, .instance = 3, .wanted = wanted});
                EXPECT_EQ(is_contended, not expected.is_granted(expected.all.back()));
            } else if (not expected.all.empty()) {
                auto leaving = expected.all.begin();
                std::advance(leaving, random.below(expected.all.size()));
                leave(leaving->number, is_granted(leaving->number), wake);
                expected.all.erase(leaving);
            }
            if (random.below(20) == 0) queue.rebuild(wake);
            for (const auto& each : expected.all)
                ASSERT_EQ(is_granted(each.number), expected.is_granted(each)) << "step " << step;
        }
        for (const auto& each : expected.all)
            leave(each.number, true, ignored);
        EXPECT_TRUE(queue.is_empty());
    }
    EXPECT_LE(memory->records_used, 12 * 3) << "records are used again";
}

TEST_F(a_mapped_queue, wakes_granted_sleepers_and_the_next_waiter_and_no_others) {
    const auto held = enter({entity(1), entity(2)});
    const auto awake = enter({entity(1)});
    const auto asleep = enter({entity(2)});
    const auto next = enter({entity(2)});
    const auto last = enter({entity(2)});
    for (const auto each : {asleep, next, last})
        queue.request_at(each).state.store(mapped::asleep);
    mapped_queue::wake_list wake;
    leave(held, true, wake);
    EXPECT_TRUE(is_granted(awake));
    const std::vector<std::uint32_t> woken(wake.all().begin(), wake.all().end());
    EXPECT_EQ(woken, (std::vector{asleep, next}));
    EXPECT_FALSE(is_granted(next));
    EXPECT_EQ(queue.request_at(last).state.load(), mapped::asleep);
}

TEST_F(a_mapped_queue, reports_that_it_grants_more_than_a_list_can_hold) {
    const auto held = enter({entity(1)});
    for (std::size_t i = 0; i != mapped_queue::wake_list::room + 1; ++i)
        queue.request_at(enter({entity(1, lock_mode::shared)})).state.store(mapped::asleep);
    mapped_queue::wake_list wake;
    leave(held, true, wake);
    EXPECT_EQ(wake.all().size(), mapped_queue::wake_list::room);
    EXPECT_TRUE(wake.has_more());
}

class processors_of_a_mapped_queue : public a_mapped_queue {
protected:
    [[nodiscard]] std::uint32_t enter_on(std::uint32_t processor, entity wanted) {
        return queue.enter({.instance = 1, .processor = processor}, std::vector{wanted}).value().number;
    }
    [[nodiscard]] std::vector<std::uint32_t> woken_when_leaves(std::uint32_t number) {
        mapped_queue::wake_list wake;
        leave(number, true, wake);
        return {wake.all().begin(), wake.all().end()};
    }
};

TEST_F(processors_of_a_mapped_queue, wakes_the_next_request_on_the_processor_of_one_that_leaves) {
    const auto held = enter_on(0, entity(1));
    const auto elsewhere = enter_on(1, entity(1));
    const auto next_elsewhere = enter_on(1, entity(1));
    const auto here = enter_on(0, entity(1));
    const auto last_here = enter_on(0, entity(1));
    for (const auto each : {here, last_here})
        queue.request_at(each).state.store(mapped::asleep);
    EXPECT_EQ(woken_when_leaves(held), std::vector{here}) << "though its turn comes two turns later";
    EXPECT_TRUE(is_granted(elsewhere));
    EXPECT_EQ(queue.request_at(last_here).state.load(), mapped::asleep);
    (void)next_elsewhere;
}

TEST_F(processors_of_a_mapped_queue, finds_the_previous_request_on_the_same_until_it_leaves) {
    const auto held = enter_on(3, entity(1));
    const auto elsewhere = enter_on(4, entity(1));
    const auto here = enter_on(3, entity(1));
    EXPECT_FALSE(queue.has_neighbour(held));
    EXPECT_FALSE(queue.has_neighbour(elsewhere));
    EXPECT_TRUE(queue.has_neighbour(here));
    leave(held, true, ignored);
    EXPECT_FALSE(queue.has_neighbour(here));
    // The request that gets the record of the one that left is another one, and has no predecessor.
    const auto fresh = enter_on(3, entity(2));
    ASSERT_EQ(fresh, held);
    EXPECT_FALSE(queue.has_neighbour(here));
    queue.request_at(here).state.store(mapped::asleep);
    EXPECT_TRUE(woken_when_leaves(fresh).empty());
}

TEST_F(processors_of_a_mapped_queue, finds_the_last_request_on_one_until_it_leaves) {
    EXPECT_FALSE(queue.has_waiter_on_processor(5));
    const auto holds = enter_on(5, entity(1));
    EXPECT_TRUE(queue.has_waiter_on_processor(5));
    EXPECT_FALSE(queue.has_waiter_on_processor(6));
    const auto waits = enter_on(5, entity(1));
    leave(holds, true, ignored);
    EXPECT_TRUE(queue.has_waiter_on_processor(5));
    leave(waits, true, ignored);
    EXPECT_FALSE(queue.has_waiter_on_processor(5));
}

TEST_F(a_mapped_queue, reports_a_dead_writer_until_a_notified_writer_has_left) {
    (void)enter({entity(1), entity(2), entity(3, lock_mode::shared)}, 7);
    const auto waits = enter({entity(1)});
    queue.reap_instance(7, ignored);
    EXPECT_TRUE(is_granted(waits));
    EXPECT_TRUE(has_news(waits));
    leave(waits, false, ignored);  // granted too late: its owner was not notified
    const auto reader = enter({entity(1, lock_mode::shared)});
    const auto second_reader = enter({entity(1, lock_mode::shared)});
    EXPECT_TRUE(has_news(reader));
    EXPECT_TRUE(has_news(second_reader));
    leave(reader, true, ignored);
    leave(second_reader, true, ignored);
    queue.rebuild(ignored);
    const auto writer = enter({entity(1)});
    EXPECT_TRUE(has_news(writer)) << "readers repair nothing";
    leave(writer, true, ignored);
    EXPECT_FALSE(has_news(enter({entity(1)})));
    EXPECT_FALSE(has_news(enter({entity(3)}))) << "a dead reader has changed nothing";
    EXPECT_TRUE(has_news(enter({entity(2)}))) << "and no holder has repaired this";
}

TEST_F(a_mapped_queue, forgets_dead_processes_that_only_waited) {
    const auto held = enter({entity(1)});
    (void)enter({entity(1)}, 7);
    const auto third = enter({entity(1)});
    queue.reap_instance(7, ignored);
    EXPECT_FALSE(is_granted(third));
    leave(held, true, ignored);
    EXPECT_TRUE(is_granted(third));
    EXPECT_FALSE(has_news(third));
}

TEST_F(a_mapped_queue, remembers_one_death_of_an_entity_not_each) {
    for (int i = 0; i != 5; ++i) {
        EXPECT_TRUE(is_granted(enter({entity(1)}, 7)));
        queue.reap_instance(7, ignored);
    }
    EXPECT_EQ(memory->records_used, 2);
    leave(enter({entity(1)}), true, ignored);
    EXPECT_TRUE(queue.is_empty());
}

TEST_F(a_mapped_queue, refuses_requests_that_do_not_fit_and_is_consistent_afterwards) {
    std::vector<std::uint32_t> all;
    while (const auto number = queue.enter({.instance = 1}, std::vector{entity(all.size() + 100)}))
        all.push_back(number->number);
    EXPECT_EQ(all.size(), mapped::requests_max);
    leave(all.back(), true, ignored);
    std::vector<entity> nine;
    for (std::uint64_t e = 0; e != 9; ++e)
        nine.emplace_back(e);
    EXPECT_FALSE(queue.enter({.instance = 1}, nine)) << "two records";
    EXPECT_TRUE(queue.enter({.instance = 1}, std::span(nine).first(8)));
}

}  // namespace
}  // namespace sluice::fsmutex
