#include "sluice/base/intrusive_mpsc_queue.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "sluice/base/random.hpp"

namespace sluice {
namespace {

struct message {
    explicit message(int n) : number(n) {}
    int number;
    mpsc_hook<message> link;
};
using message_queue = intrusive_mpsc_queue<message, &message::link>;

TEST(intrusive_mpsc_queue, is_empty_when_made_and_pops_null) {
    message_queue queue;
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.pop(), nullptr);
}

TEST(intrusive_mpsc_queue, pops_in_the_order_of_push) {
    message a(1), b(2), c(3);
    message_queue queue;
    queue.push(a);
    queue.push(b);
    EXPECT_EQ(queue.pop(), &a);
    queue.push(c);
    queue.push(a);
    EXPECT_EQ(queue.pop(), &b);
    EXPECT_EQ(queue.pop(), &c);
    EXPECT_EQ(queue.pop(), &a);
    EXPECT_EQ(queue.pop(), nullptr);
    EXPECT_TRUE(queue.empty());
}

TEST(intrusive_mpsc_queue, only_a_push_to_an_empty_queue_requests_a_wake_up) {
    message a(1), b(2);
    message_queue queue;
    EXPECT_TRUE(queue.push(a));
    EXPECT_FALSE(queue.push(b));
    (void)queue.pop();
    EXPECT_FALSE(queue.push(a));
    (void)queue.pop();
    (void)queue.pop();
    EXPECT_TRUE(queue.push(a));
    (void)queue.pop();
}

TEST(intrusive_mpsc_queue, a_hook_is_linked_from_push_to_pop) {
    message a(1);
    message_queue queue;
    EXPECT_FALSE(a.link.is_linked());
    queue.push(a);
    EXPECT_TRUE(a.link.is_linked());
    (void)queue.pop();
    EXPECT_FALSE(a.link.is_linked());
}

TEST(intrusive_mpsc_queue, an_element_may_be_destroyed_while_drained) {
    message_queue queue;
    for (int i = 0; i < 5; ++i)
        queue.push(*new message(i));
    int expected = 0;
    EXPECT_EQ(queue.drain([&](message& each) {
        EXPECT_EQ(each.number, expected++);
        delete &each;
    }),
              5u);
    EXPECT_TRUE(queue.empty());
}

TEST(intrusive_mpsc_queue, draining_ends_although_elements_queue_themselves_again) {
    message a(1), b(2);
    message_queue queue;
    EXPECT_EQ(queue.drain([](message&) {}), 0u);
    queue.push(a);
    queue.push(b);
    EXPECT_EQ(queue.drain([&](message& each) { queue.push(each); }), 2u);
    EXPECT_EQ(queue.pop(), &a);
    EXPECT_EQ(queue.pop(), &b);
}

TEST(intrusive_mpsc_queue, behaves_like_a_deque_under_random_operations) {
    seeded_random random(1);
    std::vector<std::unique_ptr<message>> messages;
    for (int i = 0; i < 10; ++i)
        messages.push_back(std::make_unique<message>(i));
    message_queue queue;
    std::deque<message*> model;
    for (int step = 0; step < 50'000; ++step) {
        message& chosen = *messages[random.below(messages.size())];
        if (!chosen.link.is_linked()) {
            ASSERT_EQ(queue.push(chosen), model.empty());
            model.push_back(&chosen);
        } else if (random.below(16) == 0) {
            std::vector<message*> drained;
            ASSERT_EQ(queue.drain([&](message& each) { drained.push_back(&each); }), model.size());
            ASSERT_EQ(drained, std::vector<message*>(model.begin(), model.end()));
            model.clear();
        } else {
            ASSERT_EQ(queue.pop(), model.front());
            model.pop_front();
        }
        ASSERT_EQ(queue.empty(), model.empty());
    }
    (void)queue.drain([](message&) {});
}

TEST(intrusive_mpsc_queue_death, misuse_stops_the_program) {
    EXPECT_DEATH(
        {
            message_queue queue;
            message a(1);
            queue.push(a);
        },
        "destroyed while linked");
    EXPECT_DEATH(
        {
            message a(1);
            message_queue queue;
            queue.push(a);
            queue.push(a);
        },
        "in a queue already");
}

}  // namespace
}  // namespace sluice
