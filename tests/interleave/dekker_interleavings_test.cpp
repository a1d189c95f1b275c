#include <gtest/gtest.h>

#include "sluice/smb/server/core/dekker_pair.hpp"
#include "sluice/sync/latch.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

using pair_type = smb::server::basic_dekker_pair<scheduled_atomics>;
using side = pair_type::side;

// The same with the orders that a release and an acquire seem to justify.
class weak_pair {
public:
    [[nodiscard]] bool raise(side by) noexcept {
        of(by).fetch_add(1, std::memory_order_acq_rel);
        return of(by == side::first ? side::second : side::first).load(std::memory_order_seq_cst) != 0;
    }
    void lower(side by) noexcept { of(by).fetch_sub(1, std::memory_order_release); }

private:
    using word = scheduled_atomics::atomic<std::uint32_t>;
    [[nodiscard]] word& of(side which) noexcept { return which == side::first ? first_ : second_; }
    word first_{0};
    word second_{0};
};

// Writers, and a grant of a read lease: a grant that finds no writer is broken by each writer that begins
// later.
template <class Pair>
class writers_and_grant final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] { write(); }, [this] { write(); }, [this] { grant(); }};
    }
    std::string verdict() override { return problem_; }

private:
    void write() {
        const bool breaks_lease = pair_.raise(side::first);
        if (breaks_lease)
            is_cached_ = false;
        else
            ++writing_unnoticed_;
        if (is_cached_ and writing_unnoticed_ != 0)
            problem_ = "a file is written while another client caches it";
        step();
        if (not breaks_lease) --writing_unnoticed_;
        pair_.lower(side::first);
    }
    void grant() {
        if (pair_.raise(side::second)) {
            pair_.lower(side::second);
            return;
        }
        is_cached_ = true;
        if (writing_unnoticed_ != 0) problem_ = "a file is cached while another client writes it";
    }

    Pair pair_;
    bool is_cached_ = false;
    int writing_unnoticed_ = 0;
    std::string problem_;
};

template <class Pair>
[[nodiscard]] report try_all(bool delays_stores) {
    return explore([] { return std::make_unique<writers_and_grant<Pair>>(); },
                   {.delays_stores = delays_stores});
}

TEST(dekker_interleavings, writer_and_grant_notice_each_other_with_delayed_stores) {
    const report found = try_all<pair_type>(true);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 100U);
}

TEST(dekker_interleavings, weaker_orders_are_found_with_delayed_stores_only) {
    EXPECT_EQ(try_all<weak_pair>(false).problem, "");
    EXPECT_NE(try_all<weak_pair>(true).problem, "");
}

// Store buffering and message passing, the two litmus tests that tell this memory model from others.
class litmus : public scenario {
protected:
    using word = scheduled_atomics::atomic<std::uint32_t>;
    word x_{0};
    word y_{0};
    std::uint32_t a_ = 7;
    std::uint32_t b_ = 7;
};

template <std::memory_order Store>
class store_buffering final : public litmus {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] {
                    x_.store(1, Store);
                    a_ = y_.load(std::memory_order_seq_cst);
                },
                [this] {
                    y_.store(1, Store);
                    b_ = x_.load(std::memory_order_seq_cst);
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

TEST(delayed_stores, become_visible_in_their_order) {
    const report found = try_delayed<message_passing>();
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
}

TEST(delayed_stores, exchanges_stay_atomic) {
    const report found = try_delayed<two_exchanges>();
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
}

// Two threads that add one to the same number under a lock.
class two_additions final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        const auto add = [this] {
            lock_.lock();
            number_.store(number_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            lock_.unlock();
        };
        return {add, add};
    }
    std::string verdict() override {
        return number_.load(std::memory_order_relaxed) == 2 ? "" : "an addition was lost";
    }

private:
    sync::basic_latch<scheduled_atomics> lock_;
    scheduled_atomics::atomic<std::uint32_t> number_{0};
};

TEST(delayed_stores, latch_keeps_threads_apart) {
    const report found = try_delayed<two_additions>();
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
}

}  // namespace
}  // namespace sluice::interleave
