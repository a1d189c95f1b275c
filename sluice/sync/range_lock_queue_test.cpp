// Long queues for one range. Each of these tests takes minutes if the cost of a grant is linear in
// the number of waiters.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/sync/range_lock_testing.hpp"

namespace sluice::sync {
namespace {

constexpr std::size_t many = 100'000;

// Requests that wait until all have been made, and then hold and release in the order of the
// grants.
template <class Atomics>
class queue {
public:
    using guard = basic_range_guard<Atomics>;

    explicit queue(const range_lock_options& options = {}) : lock(options) {}

    void ask(const lock_args& wanted) {
        requests.emplace_back(*this, requests.size());
        ASSERT_FALSE(lock.lock_async(requests.back(), wanted));
    }
    // Releases granted ranges until nothing is held.
    void drain() {
        for (; released != granted.size(); ++released)
            requests[granted[released]].take().unlock();
    }

    basic_range_lock<Atomics> lock;
    std::vector<std::size_t> granted;
    std::size_t cancelled = 0;
    std::size_t released = 0;

    class request final : public basic_range_request<Atomics> {
    public:
        request(queue& in, std::size_t number) : in_(in), number_(number) {}
        ~request() = default;

    private:
        void completed(bool is_granted) noexcept override {
            if (is_granted)
                in_.granted.push_back(number_);
            else
                ++in_.cancelled;
        }
        queue& in_;
        std::size_t number_;
    };
    std::deque<request> requests;
};

[[nodiscard]] std::vector<std::size_t> numbers_up_to(std::size_t count) {
    std::vector<std::size_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    return numbers;
}

template <class Atomics>
void expect_writers_in_order() {
    queue<Atomics> line;
    auto held = line.lock.try_lock(exclusive(10, 19));
    for (std::size_t i = 0; i != many; ++i)
        line.ask(exclusive(10, 19));
    held.unlock();
    EXPECT_EQ(line.granted.size(), 1U);
    line.drain();
    EXPECT_EQ(line.granted, numbers_up_to(many));
}

TEST(range_lock_queue, grants_one_range_to_each_of_many_writers_in_their_order) {
    expect_writers_in_order<real_atomics>();
}

TEST(range_lock_queue, does_so_with_buckets) {
    expect_writers_in_order<hot_atomics>();
}

TEST(range_lock_queue, grants_unequal_ranges_that_share_a_byte_in_their_order) {
    seeded_random random(7);
    queue<real_atomics> line;
    range_guard held = line.lock.try_lock(exclusive(1'000'000, 1'000'000));
    for (std::size_t i = 0; i != many; ++i)
        line.ask(exclusive(1'000'000 - random.below(1'000'000), 1'000'000 + random.below(1'000'000)));
    held.unlock();
    line.drain();
    EXPECT_EQ(line.granted, numbers_up_to(many));
}

TEST(range_lock_queue, grants_readers_between_writers_together) {
    queue<real_atomics> line;
    range_guard held = line.lock.try_lock(exclusive(10, 19));
    constexpr std::size_t group = 100;  // the first one is a writer
    for (std::size_t i = 0; i != many; ++i)
        line.ask(i % group == 0 ? exclusive(10, 19) : shared(10, 19));
    held.unlock();
    std::size_t writers_first = 0;
    while (line.released != line.granted.size()) {
        const std::size_t before = line.granted.size();
        const std::size_t at = line.released;
        writers_first += line.granted[at] % group == 0 ? 1 : 0;
        line.requests[line.granted[at]].take().unlock();
        ++line.released;
        const std::size_t fresh = line.granted.size() - before;
        ASSERT_TRUE(fresh == 0 or fresh == 1 or fresh == group - 1);
    }
    EXPECT_EQ(writers_first, many / group);
    std::ranges::sort(line.granted);
    EXPECT_EQ(line.granted, numbers_up_to(many));
}

TEST(range_lock_queue, lets_waiting_writers_be_cancelled_in_any_order) {
    seeded_random random(8);
    queue<real_atomics> line;
    range_guard held = line.lock.try_lock(exclusive(10, 19));
    for (std::size_t i = 0; i != many; ++i)
        line.ask(exclusive(10, 19));
    std::vector<std::size_t> order = numbers_up_to(many);
    for (std::size_t i = many; i-- > 1;)
        std::swap(order[i], order[random.below(i + 1)]);
    std::vector<std::size_t> left(order.begin() + many / 2, order.end());
    order.resize(many / 2);
    for (const std::size_t number : order)
        ASSERT_TRUE(line.lock.cancel(line.requests[number]));
    EXPECT_EQ(line.cancelled, many / 2);
    held.unlock();
    line.drain();
    std::ranges::sort(left);
    EXPECT_EQ(line.granted, left);
}

TEST(range_lock_queue, ends_all_waits_of_an_owner_at_once) {
    const int owner = 0;
    queue<real_atomics> line;
    range_guard held = line.lock.try_lock(exclusive(10, 19));
    for (std::size_t i = 0; i != many; ++i) {
        lock_args wanted = exclusive(10, 19);
        if (i % 2 == 0) wanted.owner = &owner;
        line.ask(wanted);
    }
    EXPECT_EQ(line.lock.cancel_all(&owner), many / 2);
    EXPECT_EQ(line.cancelled, many / 2);
    held.unlock();
    line.drain();
    EXPECT_EQ(line.granted.size(), many / 2);
    EXPECT_TRUE(std::ranges::is_sorted(line.granted));
}

TEST(range_lock_queue, grants_a_wide_writer_after_many_narrow_holders_and_before_those_that_came_later) {
    constexpr std::size_t holders = 20'000;
    queue<real_atomics> line({.spreads = false});
    std::vector<range_guard> narrow(holders);
    for (std::size_t i = 0; i != holders; ++i)
        narrow[i] = line.lock.try_lock(exclusive(10 * i, 10 * i + 9));
    line.ask({.where = byte_range::whole()});
    for (std::size_t i = 0; i != holders; ++i) {
        ASSERT_FALSE(line.lock.try_lock(exclusive(10 * holders + i, 10 * holders + i))) << "it came later";
        narrow[holders - 1 - i].unlock();
        ASSERT_EQ(line.granted.size(), i + 1 == holders ? 1U : 0U);
    }
    line.drain();
}

}  // namespace
}  // namespace sluice::sync
