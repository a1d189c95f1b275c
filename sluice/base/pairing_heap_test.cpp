#include "sluice/base/pairing_heap.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

struct timer {
    explicit timer(int at) : when(at) {}
    int when;
    heap_hook<timer> link;
};
struct earlier {
    bool operator()(const timer& a, const timer& b) const noexcept { return a.when < b.when; }
};
using timer_heap = pairing_heap<timer, &timer::link, earlier>;

TEST(pairing_heap, is_empty_when_made_and_pops_null) {
    timer_heap heap;
    EXPECT_TRUE(heap.empty());
    EXPECT_EQ(heap.top(), nullptr);
    EXPECT_EQ(heap.pop(), nullptr);
}

TEST(pairing_heap, pops_the_least_first_for_any_order_of_pushes) {
    timer a(3), b(1), c(2), d(1);
    timer_heap heap;
    for (timer* each : {&a, &b, &c, &d})
        heap.push(*each);
    EXPECT_EQ(heap.top()->when, 1);
    EXPECT_EQ(heap.pop()->when, 1);
    EXPECT_EQ(heap.pop()->when, 1);
    EXPECT_EQ(heap.pop(), &c);
    EXPECT_EQ(heap.pop(), &a);
    EXPECT_TRUE(heap.empty());
}

TEST(pairing_heap, a_hook_knows_whether_it_is_linked_even_as_the_only_one) {
    timer a(1);
    timer_heap heap;
    EXPECT_FALSE(a.link.is_linked());
    heap.push(a);
    EXPECT_TRUE(a.link.is_linked());
    heap.erase(a);
    EXPECT_FALSE(a.link.is_linked());
    EXPECT_TRUE(heap.empty());
}

TEST(pairing_heap, an_erased_element_may_be_pushed_again_with_another_key) {
    timer a(1), b(2), c(3);
    timer_heap heap;
    for (timer* each : {&a, &b, &c})
        heap.push(*each);
    heap.erase(a);
    a.when = 9;
    heap.push(a);
    EXPECT_EQ(heap.pop(), &b);
    EXPECT_EQ(heap.pop(), &c);
    EXPECT_EQ(heap.pop(), &a);
}

// Descending pushes make one path of all elements, ascending ones a root with all others as
// children: a recursive heap would run out of stack on either.
TEST(pairing_heap, the_deepest_and_the_widest_trees_do_not_exhaust_the_stack) {
    constexpr int count = 300'000;
    for (const int step : {-1, 1}) {
        std::vector<std::unique_ptr<timer>> timers;
        timer_heap heap;
        for (int i = 0; i < count; ++i)
            heap.push(*timers.emplace_back(std::make_unique<timer>(step * i)));
        heap.erase(*timers[count / 2]);
        int last = -count;
        for (int i = 1; i < count; ++i) {
            const timer* const popped = heap.pop();
            ASSERT_GE(popped->when, last);
            last = popped->when;
        }
        EXPECT_TRUE(heap.empty());
    }
}

TEST(pairing_heap, behaves_like_a_multiset_under_random_operations) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        seeded_random random(seed);
        const int key_count = seed % 2 == 0 ? 20 : 100'000;  // many equal keys, or hardly any
        std::vector<std::unique_ptr<timer>> timers;
        for (int i = 0; i < 200; ++i)
            timers.push_back(std::make_unique<timer>(0));
        timer_heap heap;
        std::multiset<int> model;
        for (int step = 0; step < 10'000; ++step) {
            timer& chosen = *timers[random.below(timers.size())];
            if (!chosen.link.is_linked()) {
                chosen.when = static_cast<int>(random.below(static_cast<unsigned>(key_count)));
                heap.push(chosen);
                model.insert(chosen.when);
            } else if (random.below(4) == 0) {
                const timer* const popped = heap.pop();
                ASSERT_EQ(popped->when, *model.begin()) << "seed " << seed << " step " << step;
                model.erase(model.begin());
            } else if (random.below(2) == 0) {
                heap.erase(chosen);
                model.erase(model.find(chosen.when));
            }
            ASSERT_EQ(heap.empty(), model.empty());
            if (!model.empty())
                ASSERT_EQ(heap.top()->when, *model.begin()) << "seed " << seed << " step " << step;
        }
        for (const int when : model)
            ASSERT_EQ(heap.pop()->when, when);
        EXPECT_TRUE(heap.empty());
    }
}

TEST(pairing_heap_death, misuse_stops_the_program) {
    EXPECT_DEATH(
        {
            timer_heap heap;
            timer a(1);
            heap.push(a);
        },
        "destroyed while linked");
    EXPECT_DEATH(
        {
            timer a(1);
            timer_heap heap;
            heap.push(a);
            heap.push(a);
        },
        "in a heap already");
    EXPECT_DEATH(
        {
            timer a(1);
            timer b(1);
            timer_heap heap;
            timer_heap other;
            heap.push(a);
            other.push(b);
            other.erase(a);
        },
        "another heap");
}

}  // namespace
}  // namespace sluice
