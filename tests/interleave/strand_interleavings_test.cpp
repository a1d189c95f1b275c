#include <gtest/gtest.h>

#include <deque>

#include "sluice/io/task/turn_count.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

// Each access is one step.
class word {
public:
    explicit word(std::size_t first) noexcept : value_(first) {}
    [[nodiscard]] std::size_t load(std::memory_order /*order*/) const noexcept {
        step();
        return value_;
    }
    std::size_t fetch_add(std::size_t more, std::memory_order /*order*/) noexcept {
        step();
        return std::exchange(value_, value_ + more);
    }
    std::size_t fetch_sub(std::size_t less, std::memory_order /*order*/) noexcept {
        step();
        return std::exchange(value_, value_ - less);
    }

private:
    std::size_t value_;
};
using count_type = io::turn_count<word>;

// As strand does it, except for the order of counting and pushing, which can be wrong.
enum class order : unsigned char { counted_first, pushed_first };

// Threads post to a strand; the last one belongs to the multiplexer, which carries out a run if one
// was requested, and checks for that a few times.
class posting final : public scenario {
public:
    explicit posting(order how) : how_(how) {}

    // Three threads post: with two, every order works, whichever comes first.
    std::vector<std::function<void()>> threads() override {
        return {[this] { post(); }, [this] { post(); }, [this] { post(); }, [this] { work(); }};
    }

    std::string verdict() override {
        while (runs_asked_ > 0 and problem_.empty())
            run();
        if (problem_.empty() and (done_ != 3 or not queue_.empty())) problem_ = "an item was not run";
        if (problem_.empty() and not count_.is_idle()) problem_ = "the strand is not idle";
        return problem_;
    }

private:
    void post() {
        if (how_ == order::pushed_first) push();
        const bool is_first = count_.add();
        if (how_ == order::counted_first) push();
        if (is_first) ask();
    }
    void push() {
        step();
        queue_.push_back(1);
    }
    void ask() {
        step();
        // One item of a multiplexer, which is queued at most once at a time.
        if (++runs_asked_ + runs_under_way_ > 1) problem_ = "a run was requested during another";
    }
    void work() {
        for (int looks = 0; looks < 2; ++looks) {
            step();
            if (runs_asked_ > 0) run();
        }
    }
    void run() {
        --runs_asked_;
        if (++runs_under_way_ > 1) problem_ = "two runs at the same time";
        const std::size_t most = how_ == order::counted_first ? count_.at_most(64) : 64;
        std::size_t count = 0;
        while (count < most) {
            step();
            if (queue_.empty()) break;
            queue_.pop_front();
            ++count;
            ++done_;
        }
        // The run ends with this step; the next begins after it.
        --runs_under_way_;
        const bool more = count_.remove(count);
        if (more) ask();
    }

    order how_;
    count_type count_;
    std::deque<int> queue_;
    int runs_asked_ = 0;
    int runs_under_way_ = 0;
    int done_ = 0;
    std::string problem_;
};

TEST(strand_interleavings, every_item_is_run_and_runs_do_not_overlap) {
    const report found =
        explore([] { return std::make_unique<posting>(order::counted_first); }, {.preemptions_max = 3});
    EXPECT_TRUE(found.problem.empty()) << found.problem;
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 100U);
}

TEST(strand_interleavings, pushing_before_counting_is_detected) {
    const report found =
        explore([] { return std::make_unique<posting>(order::pushed_first); }, {.preemptions_max = 4});
    EXPECT_FALSE(found.problem.empty());
}

}  // namespace
}  // namespace sluice::interleave
