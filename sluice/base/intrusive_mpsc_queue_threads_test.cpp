#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/base/intrusive_mpsc_queue.hpp"

namespace sluice {
namespace {

struct message {
    std::uint32_t producer = 0;
    // Plain on purpose: a thread sanitizer checks that the queue publishes it.
    std::uint32_t number = 0;
    mpsc_hook<message> link;
};
using message_queue = intrusive_mpsc_queue<message, &message::link>;

constexpr std::uint32_t producer_count = 4;
constexpr std::uint32_t messages_each = 20'000;

std::vector<std::jthread> start_producers(message_queue& queue, auto after_push) {
    std::vector<std::jthread> producers;
    for (std::uint32_t producer = 0; producer < producer_count; ++producer) {
        producers.emplace_back([&queue, producer, after_push] {
            for (std::uint32_t number = 0; number < messages_each; ++number) {
                auto* fresh = new message;
                fresh->producer = producer;
                fresh->number = number;
                after_push(queue.push(*fresh));
            }
        });
    }
    return producers;
}

// Checks each message against the last of its producer and frees it at once, so that an address
// sanitizer catches a push that touches its predecessor too late.
struct checker {
    std::vector<std::uint32_t> expected = std::vector<std::uint32_t>(producer_count);
    std::uint32_t received = 0;

    void operator()(message& each) {
        EXPECT_EQ(each.number, expected[each.producer]++);
        ++received;
        delete &each;
    }
    [[nodiscard]] bool done() const { return received == producer_count * messages_each; }
};

TEST(intrusive_mpsc_queue_threads, keeps_the_order_of_each_producer_and_loses_nothing) {
    message_queue queue;
    checker check;
    const auto producers = start_producers(queue, [](bool) {});
    while (!check.done()) {
        if (message* const popped = queue.pop()) {
            check(*popped);
        } else {
            std::this_thread::yield();
        }
    }
    EXPECT_TRUE(queue.empty());
}

TEST(intrusive_mpsc_queue_threads, draining_keeps_the_order_of_each_producer_and_loses_nothing) {
    message_queue queue;
    checker check;
    const auto producers = start_producers(queue, [](bool) {});
    while (!check.done()) {
        if (queue.drain([&](message& each) { check(each); }) == 0) std::this_thread::yield();
    }
    EXPECT_TRUE(queue.empty());
}

// The rule from the header: wake when push() returned true, sleep only if empty() after pop()
// returned null. A lost wake-up causes a hang.
TEST(intrusive_mpsc_queue_threads, a_sleeping_consumer_is_woken_for_every_element) {
    message_queue queue;
    checker check;
    std::atomic<std::uint32_t> wake_ups{0};
    const auto producers = start_producers(queue, [&](bool was_empty) {
        if (!was_empty) return;
        wake_ups.fetch_add(1, std::memory_order_release);  // pairs with the wait below
        wake_ups.notify_one();
    });
    std::uint32_t seen = 0;
    while (!check.done()) {
        if (message* const popped = queue.pop()) {
            check(*popped);
        } else if (queue.empty()) {
            // Pairs with the fetch_add of a producer.
            wake_ups.wait(seen, std::memory_order_acquire);
            seen = wake_ups.load(std::memory_order_relaxed);
        } else {
            std::this_thread::yield();
        }
    }
    EXPECT_TRUE(queue.empty());
}

// A few elements that are pushed repeatedly keep the queue between one element and none, where
// push() alternates between its two paths.
TEST(intrusive_mpsc_queue_threads, repeatedly_running_empty_loses_nothing) {
    struct ball {
        std::uint32_t throws = 0;
        std::atomic<bool> returned{true};
        mpsc_hook<ball> link;
    };
    intrusive_mpsc_queue<ball, &ball::link> queue;
    std::vector<std::unique_ptr<ball>> balls;
    for (std::uint32_t i = 0; i < producer_count; ++i)
        balls.push_back(std::make_unique<ball>());
    std::vector<std::jthread> producers;
    for (auto& own : balls) {
        producers.emplace_back([&queue, &mine = *own] {
            for (std::uint32_t i = 0; i < messages_each; ++i) {
                // acquire: the ball comes back; pairs with the consumer's store.
                while (!mine.returned.load(std::memory_order_acquire))
                    std::this_thread::yield();
                mine.returned.store(false, std::memory_order_relaxed);  // published by push
                ++mine.throws;
                queue.push(mine);
            }
        });
    }
    std::uint64_t received = 0;
    while (received < std::uint64_t{producer_count} * messages_each) {
        if (ball* const caught = queue.pop()) {
            ++received;
            // Pairs with the producer's load.
            caught->returned.store(true, std::memory_order_release);
        } else {
            std::this_thread::yield();
        }
    }
    producers.clear();
    for (const auto& each : balls)
        EXPECT_EQ(each->throws, messages_each);
    EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace sluice
