#include <gtest/gtest.h>

#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

// Store buffering and message passing, the two litmus tests that distinguish this memory model from
// others.
class litmus : public scenario {
protected:
    using word = scheduled_atomics::atomic<std::uint32_t>;
    word x_{0};
    word y_{0};
    std::uint32_t a_ = 7;
    std::uint32_t b_ = 7;
};

template <std::memory_order Store, std::memory_order Load = std::memory_order_seq_cst>
class store_buffering final : public litmus {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] {
                    x_.store(1, Store);
                    a_ = y_.load(Load);
                },
                [this] {
                    y_.store(1, Store);
                    b_ = x_.load(Load);
                }};
    }
    std::string verdict() override { return a_ == 0 and b_ == 0 ? "both loads overtake both stores" : ""; }
};

class message_passing final : public litmus {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] {
                    x_.store(1, std::memory_order_relaxed);
                    y_.store(1, std::memory_order_release);
                },
                [this] {
                    a_ = y_.load(std::memory_order_acquire);
                    b_ = x_.load(std::memory_order_relaxed);
                }};
    }
    std::string verdict() override {
        return a_ == 1 and b_ == 0 ? "a message arrives before its content" : "";
    }
};

// An exchange reads the latest value, delayed or not.
class two_exchanges final : public litmus {
public:
    std::vector<std::function<void()>> threads() override {
        const auto add = [this] { x_.fetch_add(1, std::memory_order_relaxed); };
        return {add, add, [this] { x_.fetch_add(1, std::memory_order_seq_cst); }};
    }
    std::string verdict() override {
        return x_.load(std::memory_order_seq_cst) == 3 ? "" : "an exchange is lost";
    }
};

template <class Scenario>
[[nodiscard]] report try_delayed() {
    return explore([] { return std::make_unique<Scenario>(); }, {.delays_stores = true});
}

TEST(delayed_stores, store_that_is_not_seq_cst_is_overtaken) {
    EXPECT_NE(try_delayed<store_buffering<std::memory_order_release>>().problem, "");
    const report strong = try_delayed<store_buffering<std::memory_order_seq_cst>>();
    EXPECT_EQ(strong.problem, "");
    EXPECT_TRUE(strong.is_complete);
    const report undelayed =
        explore([] { return std::make_unique<store_buffering<std::memory_order_release>>(); });
    EXPECT_EQ(undelayed.problem, "");
}

TEST(delayed_stores, that_are_seq_cst_are_overtaken_by_loads_that_are_not) {
    constexpr auto strong = std::memory_order_seq_cst;
    constexpr limits all{.delays_all_stores = true};
    const report mixed =
        explore([] { return std::make_unique<store_buffering<strong, std::memory_order_acquire>>(); }, all);
    EXPECT_NE(mixed.problem, "");
    const report same = explore([] { return std::make_unique<store_buffering<strong>>(); }, all);
    EXPECT_EQ(same.problem, "");
    EXPECT_TRUE(same.is_complete);
}

TEST(delayed_stores, become_visible_in_their_order) {
    for (const limits& within : {limits{.delays_stores = true}, limits{.delays_all_stores = true}}) {
        const report found = explore([] { return std::make_unique<message_passing>(); }, within);
        EXPECT_EQ(found.problem, "");
        EXPECT_TRUE(found.is_complete);
    }
}

TEST(delayed_stores, exchanges_stay_atomic) {
    const report found = try_delayed<two_exchanges>();
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
}

}  // namespace
}  // namespace sluice::interleave
