#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "sluice/io/task/child_count.hpp"
#include "tests/interleave/simulated_engine.hpp"

// A task group whose children end on several threads while a task joins it, and destroys it when
// the join is over, in every order with few preemptions. The functions are those of task_group.cpp.

namespace sluice::interleave {
namespace {

/// A rule that is omitted, to verify that the exploration detects it.
enum class fault : unsigned char {
    none,
    notes_waiter_late,    // the joining task is recorded after it is announced
    forgets_waiter,       // the last child does not resume it
    looks_at_group_later  // a child checks the count of the others after its own end
};

struct group {
    io::child_count<scheduled_atomics::atomic<std::size_t>> count;
    simulated_coroutine* waiter = nullptr;
};

class joining final : public scenario {
public:
    explicit joining(fault left_out) : left_out_(left_out) {}

    std::vector<std::function<void()>> threads() override {
        for (int i = 0; i < children; ++i)
            group_->count.add();
        std::vector<std::function<void()>> all(children, [this] { end_child(); });
        all.emplace_back([this] { join(); });
        return all;
    }
    std::string verdict() override {
        if (seen_ != children) return "the join ended before all children";
        if (task_.resumptions() > 1) return "the joining task was resumed twice";
        return {};
    }

private:
    static constexpr int children = 2;

    void end_child() {
        step();
        ++ended_;
        if (group_->count.end()) {
            simulated_coroutine* const waiter = std::exchange(group_->waiter, nullptr);
            if (waiter != nullptr and left_out_ != fault::forgets_waiter) waiter->resume();
        } else if (left_out_ == fault::looks_at_group_later) {
            (void)group_->count.size();
        }
    }
    void join() {
        if (group_->count.size() != 0 and wait()) task_.wait();
        seen_ = ended_;
        group_.reset();
    }
    bool wait() {
        task_.suspend();
        if (left_out_ != fault::notes_waiter_late) group_->waiter = &task_;
        const bool waits = group_->count.begin_wait();
        if (left_out_ == fault::notes_waiter_late) {
            step();
            group_->waiter = &task_;
        }
        return waits;
    }

    fault left_out_;
    std::optional<group> group_{std::in_place};
    simulated_coroutine task_;
    int ended_ = 0;
    int seen_ = 0;
};

// A task joins a group without children while another thread adds one, which ends.
class adding final : public scenario {
public:
    std::vector<std::function<void()>> threads() override {
        return {[this] {
                    count_.add();
                    ends_ = count_.end();
                },
                [this] { waits_ = count_.begin_wait(); }};
    }
    std::string verdict() override {
        if (ends_ != waits_) return "the child ended a wait that had not begun, or did not end one that had";
        return count_.size() == 0 ? "" : "a child remains";
    }

private:
    io::child_count<scheduled_atomics::atomic<std::size_t>> count_;
    bool ends_ = false;
    bool waits_ = false;
};

TEST(task_group_interleavings, a_child_that_is_added_during_a_join_is_not_lost) {
    const report found = explore([] { return std::make_unique<adding>(); });
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
}

report explored(fault left_out) {
    return explore([=] { return std::make_unique<joining>(left_out); });
}

TEST(task_group_interleavings, the_last_child_ends_the_join_once_and_none_uses_the_group_later) {
    const report found = explored(fault::none);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete);
    EXPECT_GT(found.schedules, 50U);
}

TEST(task_group_interleavings, recording_the_waiter_late_is_detected) {
    EXPECT_NE(explored(fault::notes_waiter_late).problem, "");
}

TEST(task_group_interleavings, forgetting_the_waiter_is_detected) {
    EXPECT_NE(explored(fault::forgets_waiter).problem, "");
}

TEST(task_group_interleavings, use_of_the_group_after_the_end_of_a_child_is_detected) {
    EXPECT_DEATH((void)explored(fault::looks_at_group_later), "used after its destruction");
}

}  // namespace
}  // namespace sluice::interleave
