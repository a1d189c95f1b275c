#include "sluice/io/sender/atomic_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <set>
#include <utility>
#include <vector>

namespace sluice::io {
namespace {

// Visits a tree of choices depth first by running a scenario again for every leaf.
class choices {
public:
    std::size_t pick(std::size_t options) {
        if (at_ == path_.size()) path_.push_back({.taken = 0, .options = options});
        EXPECT_EQ(path_[at_].options, options) << "the scenario is not deterministic";
        return path_[at_++].taken;
    }
    // Prepares the next run; returns false when all runs are done.
    bool next() {
        at_ = 0;
        while (not path_.empty() and path_.back().taken + 1 == path_.back().options)
            path_.pop_back();
        if (path_.empty()) return false;
        ++path_.back().taken;
        return true;
    }

private:
    struct branch {
        std::size_t taken;
        std::size_t options;
    };
    std::vector<branch> path_;
    std::size_t at_ = 0;
};

// A word that lets other threads run before each access to it.
struct interrupted_word {
    static inline std::function<void()> before_access;

    std::uint32_t load(std::memory_order) const {
        if (before_access) before_access();
        return value;
    }
    bool compare_exchange_weak(std::uint32_t& expected, std::uint32_t desired, std::memory_order,
                               std::memory_order) {
        if (before_access) before_access();
        if (value == expected) {
            value = desired;
            return true;
        }
        expected = value;
        return false;
    }
    std::uint32_t value = 0;
};

using state = atomic_state<interrupted_word>;

// One operation, its multiplexer, and threads that start and cancel it, reduced to the order of
// steps that each of them may do. A step of one thread can be interrupted, before each access to
// the word, by complete steps of the others. Because a step changes the word once, that gives every
// order of changes and every failed exchange.
struct world {
    enum class item { start, cancel };
    enum class io { none, running, over };
    struct thread {
        bool starts;  // or cancels
        int left;     // how many times
        std::vector<item> to_push;
        bool busy = false;
    };

    explicit world(choices& from) : choose(from) {}

    choices& choose;
    state word;
    std::vector<thread> threads;
    std::deque<item> posted;
    io progress = io::none;
    bool cancelled = false;
    bool busy = false;  // the owner is inside a step
    int depth = 0;
    int wins = 0, values = 0, dones = 0, refusals = 0;
    std::set<std::pair<int, bool>> outcomes;

    bool can_run(const thread& t) const { return not t.busy and (t.left > 0 or not t.to_push.empty()); }

    void run(thread& t) {
        t.busy = true;
        if (not t.to_push.empty()) {
            posted.push_back(t.to_push.front());
            t.to_push.clear();
        } else if (--t.left; t.starts) {
            if (word.claim()) {
                ++wins;
                t.to_push = {item::start};
            }
        } else if (word.cancel(false) == state::cancel_step::post_item) {
            t.to_push = {item::cancel};
        }
        t.busy = false;
    }

    // The steps that the owner can do next; the I/O may end at any time.
    std::vector<std::function<void()>> owner_steps() {
        std::vector<std::function<void()>> steps;
        if (busy) return steps;
        if (not posted.empty()) steps.push_back([this] { take(); });
        if (progress == io::running) steps.push_back([this] { complete(); });
        return steps;
    }

    void take() {
        const item taken = posted.front();
        posted.pop_front();
        if (taken == item::start) {
            ASSERT_EQ(progress, io::none) << "started while running";
            if (word.begin()) {
                progress = io::running;
            } else {
                ++refusals;
                progress = io::over;
                word.value();
                ++values;
                end();
            }
            return;
        }
        switch (word.cancel_arrived()) {
            case state::arrival_step::nothing:
                break;
            case state::arrival_step::cancel_io:
                ASSERT_EQ(progress, io::running) << "cancelled what does not run";
                cancelled = true;
                break;
            case state::arrival_step::signal_done:
                ASSERT_EQ(progress, io::over);
                done();
                break;
        }
    }

    void complete() {
        progress = io::over;
        word.value();
        ++values;
        ASSERT_EQ(values, dones + 1);
        end();
    }

    void end() {
        if (word.end()) done();
    }

    void done() {
        ++dones;
        ASSERT_EQ(dones, values) << "done before value, or twice";
        // The state could be destroyed now: no thread may hold, or be about to push, one of its
        // items. A start claimed since then belongs to the next round.
        ASSERT_TRUE(std::find(posted.begin(), posted.end(), item::cancel) == posted.end());
        for (const thread& t : threads)
            ASSERT_TRUE(std::find(t.to_push.begin(), t.to_push.end(), item::cancel) == t.to_push.end());
        outcomes.insert({refusals, cancelled});
        progress = io::none;
        cancelled = false;
    }

    // The steps that any thread can do next.
    std::vector<std::function<void()>> all_steps() {
        std::vector<std::function<void()>> steps;
        for (thread& t : threads) {
            if (can_run(t)) steps.push_back([this, &t] { run(t); });
        }
        for (auto& step : owner_steps())
            steps.push_back([this, step] {
                busy = true;
                step();
                busy = false;
            });
        return steps;
    }

    // Lets another thread go first, or no thread.
    void interrupt() {
        constexpr int depth_max = 2;
        if (depth >= depth_max) return;
        const auto steps = all_steps();
        const std::size_t which = choose.pick(steps.size() + 1);
        if (which == steps.size()) return;
        ++depth;
        steps[which]();
        --depth;
    }

    void run_all() {
        interrupted_word::before_access = [this] { interrupt(); };
        while (not testing::Test::HasFatalFailure()) {
            const auto steps = all_steps();
            if (steps.empty()) break;
            steps[choose.pick(steps.size())]();
        }
        interrupted_word::before_access = nullptr;
    }
};

struct explored {
    std::size_t runs = 0;
    std::set<std::pair<int, bool>> outcomes;
    int wins_max = 0;
};

explored explore(const std::vector<world::thread>& threads) {
    explored all;
    choices choose;
    do {
        world w(choose);
        w.threads = threads;
        w.run_all();
        ++all.runs;
        EXPECT_GE(w.wins, 1);
        EXPECT_EQ(w.values, w.wins);
        EXPECT_EQ(w.dones, w.wins) << "a done signal was lost";
        EXPECT_FALSE(w.word.is_pending());
        all.wins_max = std::max(all.wins_max, w.wins);
        all.outcomes.merge(w.outcomes);
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "in interleaving " << all.runs;
            break;
        }
    } while (choose.next());
    return all;
}

constexpr std::pair<int, bool> undisturbed{0, false}, cancelled_while_running{0, true},
    refused_to_begin{1, false};

TEST(atomic_state, one_start_and_one_cancel_end_well_in_every_interleaving) {
    const explored all = explore({{.starts = true, .left = 1, .to_push = {}},  //
                                  {.starts = false, .left = 1, .to_push = {}}});
    EXPECT_TRUE(all.outcomes.contains(undisturbed));
    EXPECT_TRUE(all.outcomes.contains(cancelled_while_running));
    EXPECT_TRUE(all.outcomes.contains(refused_to_begin));
    RecordProperty("interleavings", static_cast<int>(all.runs));
}

TEST(atomic_state, one_of_two_starts_wins_or_both_in_turn_in_every_interleaving) {
    const explored all = explore({{.starts = true, .left = 1, .to_push = {}},  //
                                  {.starts = true, .left = 1, .to_push = {}},
                                  {.starts = false, .left = 1, .to_push = {}}});
    EXPECT_EQ(all.wins_max, 2);
    EXPECT_GT(all.runs, 1000U);
    RecordProperty("interleavings", static_cast<int>(all.runs));
}

TEST(atomic_state, two_cancels_post_one_item_in_every_interleaving) {
    const explored all = explore({{.starts = true, .left = 1, .to_push = {}},
                                  {.starts = false, .left = 1, .to_push = {}},
                                  {.starts = false, .left = 1, .to_push = {}}});
    EXPECT_GT(all.runs, 1000U);
    RecordProperty("interleavings", static_cast<int>(all.runs));
}

TEST(atomic_state, a_cancel_of_an_idle_state_does_nothing) {
    atomic_state<> idle;
    EXPECT_EQ(idle.cancel(false), atomic_state<>::cancel_step::nothing);
    EXPECT_EQ(idle.cancel(true), atomic_state<>::cancel_step::nothing);
    ASSERT_TRUE(idle.claim());
    EXPECT_TRUE(idle.begin());
    EXPECT_FALSE(idle.claim());
    idle.value();
    EXPECT_EQ(idle.cancel(false), atomic_state<>::cancel_step::nothing);
    EXPECT_TRUE(idle.end());
    EXPECT_TRUE(idle.has_value());
    EXPECT_FALSE(idle.is_pending());
}

}  // namespace
}  // namespace sluice::io
