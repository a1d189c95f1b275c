#include <gtest/gtest.h>

#include <array>

#include "sluice/sync/range_lock_testing.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

using lock_type = sync::basic_range_lock<scheduled_atomics>;
using guard = lock_type::guard;
using sync::byte_range;
using sync::exclusive;
using sync::lock_args;
using sync::lock_mode;
using sync::shared;

// Threads that use ranges of twenty bytes, each byte of which knows who is in it.
class users : public scenario {
public:
    std::string verdict() override {
        if (is_violated_) return "two that conflict held a range at once";
        if (not lock.try_lock({.where = byte_range::whole()})) return "something stays locked";
        return verdict_of_this();
    }

protected:
    [[nodiscard]] virtual std::string verdict_of_this() { return ""; }

    void use(const guard& held, lock_mode mode) {
        const int weight = mode == lock_mode::exclusive ? 100 : 1;
        for (std::uint64_t at = held.where().first(); at <= held.where().last(); ++at) {
            is_violated_ =
                is_violated_ or (mode == lock_mode::exclusive ? bytes_[at] != 0 : bytes_[at] >= 100);
            bytes_[at] += weight;
        }
        step();
        for (std::uint64_t at = held.where().first(); at <= held.where().last(); ++at)
            bytes_[at] -= weight;
    }
    void lock_and_use(const lock_args& wanted) {
        const guard held = lock.lock(wanted);
        use(held, wanted.mode);
    }
    void use_if_free(const lock_args& wanted) {
        const guard held = lock.try_lock(wanted);
        if (held) use(held, wanted.mode);
    }

    lock_type lock;

private:
    std::array<int, 20> bytes_{};
    bool is_violated_ = false;
};

template <class Scenario>
void expect_every_schedule_right(const limits& within = {}) {
    const report found = explore([] { return std::make_unique<Scenario>(); }, within);
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete) << "after " << found.schedules << " schedules";
    EXPECT_GT(found.schedules, 20U);
    testing::Test::RecordProperty("schedules", static_cast<int>(found.schedules));
}

class overlapping_writers final : public users {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(exclusive(0, 5)); }, [this] { lock_and_use(exclusive(3, 9)); },
                [this] { lock_and_use(exclusive(8, 12)); }};
    }
};

TEST(range_lock, keeps_overlapping_writers_apart_in_every_schedule) {
    expect_every_schedule_right<overlapping_writers>();
}

class readers_and_a_writer final : public users {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(shared(0, 5)); }, [this] { lock_and_use(exclusive(3, 9)); },
                [this] { lock_and_use(shared(4, 12)); }};
    }
};

TEST(range_lock, lets_readers_share_around_a_writer_in_every_schedule) {
    expect_every_schedule_right<readers_and_a_writer>();
}

class late_waiter final : public users {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(exclusive(0, 5)); },
                [this] {
                    const guard held = lock.try_lock_for(exclusive(3, 9), std::chrono::seconds(1));
                    if (held) use(held, lock_mode::exclusive);
                },
                [this] { use_if_free(exclusive(8, 12)); }};
    }
};

TEST(range_lock, loses_no_grant_to_a_deadline_in_every_schedule) {
    expect_every_schedule_right<late_waiter>();
}

class cancelled_request final : public users {
    std::vector<std::function<void()>> threads() override {
        held_ = lock.try_lock(exclusive(0, 5));
        was_granted_at_once_ = lock.lock_async(request_, exclusive(3, 9));
        return {[this] { held_.unlock(); }, [this] { was_cancelled_ = lock.cancel(request_); },
                [this] { use_if_free(exclusive(8, 12)); }};
    }
    std::string verdict() override {
        if (was_granted_at_once_) return "granted beside what was held";
        if (request_.completions != 1) return "completed other than once";
        if (request_.is_granted == was_cancelled_) return "both granted and cancelled, or neither";
        request_.take().unlock();
        return users::verdict();
    }

    guard held_;
    sync::basic_remembered_request<scheduled_atomics> request_;
    bool was_granted_at_once_ = false;
    bool was_cancelled_ = false;
};

TEST(range_lock, either_grants_or_cancels_a_request_in_every_schedule) {
    expect_every_schedule_right<cancelled_request>();
}

class owner_that_leaves final : public users {
    std::vector<std::function<void()>> threads() override {
        const auto ask = [this](lock_args wanted) {
            wanted.owner = this;
            const guard held = lock.lock(wanted);
            if (held) use(held, wanted.mode);
        };
        return {[=] { ask(exclusive(0, 5)); }, [=] { ask(exclusive(3, 9)); },
                [this] { (void)lock.cancel_all(this); }};
    }
};

TEST(range_lock, ends_all_waits_of_an_owner_in_every_schedule) {
    expect_every_schedule_right<owner_that_leaves>();
}

class part_given_back final : public users {
    std::vector<std::function<void()>> threads() override {
        return {[this] {
                    guard held = lock.lock(exclusive(0, 9));
                    guard rest;
                    held.split(5, rest);
                    rest.downgrade();
                    use(held, lock_mode::exclusive);
                    held.unlock();
                    use(rest, lock_mode::shared);
                },
                [this] { lock_and_use(exclusive(0, 4)); }, [this] { lock_and_use(shared(6, 9)); }};
    }
};

TEST(range_lock, hands_over_what_is_split_and_downgraded_in_every_schedule) {
    expect_every_schedule_right<part_given_back>();
}

}  // namespace
}  // namespace sluice::interleave
