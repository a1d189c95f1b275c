#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

#include "sluice/sync/range_lock_testing.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

using sync::byte_range;
using sync::exclusive;
using sync::lock_args;
using sync::lock_mode;
using sync::shared;

// Threads that use ranges of twenty bytes, each of which records its holders.
template <class Atomics>
class users_of : public scenario {
public:
    using guard = sync::basic_range_guard<Atomics>;

    std::string verdict() override {
        if (is_violated_) return "conflicting holders held a range at once";
        if (not lock.try_lock({.where = byte_range::whole()})) return "a range is still locked";
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

    sync::basic_range_lock<Atomics> lock;

private:
    std::array<int, 20> bytes_{};
    bool is_violated_ = false;
};

using users = users_of<scheduled_atomics>;

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

TEST(range_lock, excludes_overlapping_writers_in_every_schedule) {
    expect_every_schedule_right<overlapping_writers>();
}

class readers_and_a_writer final : public users {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(shared(0, 5)); }, [this] { lock_and_use(exclusive(3, 9)); },
                [this] { lock_and_use(shared(4, 12)); }};
    }
};

TEST(range_lock, lets_readers_share_before_and_after_a_writer_in_every_schedule) {
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
        if (was_granted_at_once_) return "granted despite a conflict";
        if (request_.completions != 1) return "not completed exactly once";
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

TEST(range_lock, grants_parts_that_are_split_off_or_downgraded_in_every_schedule) {
    expect_every_schedule_right<part_given_back>();
}

// A lock that uses two buckets as soon as two ranges are held at once, abandons them when one
// holder is left, and adds more when one is full.
struct hot_scheduled_atomics : scheduled_atomics {
    struct tuning {
        static constexpr std::uint32_t contention_max = 1;
        static constexpr unsigned buckets_log2_first = 1;
        static constexpr unsigned buckets_log2_max = 2;
        static constexpr std::uint32_t full_bucket_requests_max = 1;
        static constexpr std::uint32_t leaves_per_note = 1;
        static constexpr std::uint32_t notes_per_check = 2;
        static constexpr std::uint32_t single_thread_checks_max = 1;
        static constexpr std::uint32_t wide_per_check_max = 1;
        static constexpr std::uint32_t nesting_max = 1;
    };
};

class spread_users : public users_of<hot_scheduled_atomics> {
protected:
    // From here on, ranges are stored in buckets of four bytes each.
    void spread() {
        guard one = lock.lock(exclusive(0, 3));
        guard other = lock.lock(exclusive(4, 7));
        other.unlock();
        one.unlock();
        is_spread_ = lock.bytes_allocated() != 0;
    }
    std::string verdict_of_this() override { return is_spread_ ? "" : "the buckets were never used"; }

    bool is_spread_ = false;
};

// A scenario with two of its three threads.
template <class Scenario, std::size_t left_out>
class without final : public Scenario {
    std::vector<std::function<void()>> threads() override {
        auto all = Scenario::threads();
        all.erase(all.begin() + left_out);
        return all;
    }
};

// Three threads with two preemptions take minutes (SLUICE_ALL_SCHEDULES=1); each pair of them does
// not.
template <class Scenario>
void expect_every_schedule_of_two_or_three_right() {
    const bool wants_all = std::getenv("SLUICE_ALL_SCHEDULES") != nullptr;
    expect_every_schedule_right<Scenario>({.preemptions_max = wants_all ? 2U : 1U});
    expect_every_schedule_right<without<Scenario, 0>>();
    expect_every_schedule_right<without<Scenario, 1>>();
    expect_every_schedule_right<without<Scenario, 2>>();
}

class spreads_beside_holders final : public users_of<hot_scheduled_atomics> {
    std::vector<std::function<void()>> threads() override {
        return {[this] { lock_and_use(exclusive(0, 5)); }, [this] { lock_and_use(exclusive(8, 9)); },
                [this] { lock_and_use(exclusive(4, 8)); }};
    }
};

TEST(range_lock, starts_to_use_buckets_during_releases_in_every_schedule) {
    expect_every_schedule_right<spreads_beside_holders>();
}

class narrow_and_wide : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        return {[this] { lock_and_use(exclusive(0, 3)); }, [this] { lock_and_use(exclusive(0, 19)); },
                [this] { lock_and_use(exclusive(8, 11)); }};
    }
};

TEST(range_lock, excludes_narrow_ranges_from_a_wide_one_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<narrow_and_wide>();
}

class one_bucket_and_two : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        return {[this] { lock_and_use(exclusive(0, 3)); }, [this] { lock_and_use(exclusive(2, 5)); },
                [this] { lock_and_use(shared(4, 7)); }};
    }
};

TEST(range_lock, excludes_ranges_in_one_bucket_from_ranges_in_two_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<one_bucket_and_two>();
}

class readers_that_are_gathered : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        return {[this] { lock_and_use(shared(0, 3)); }, [this] { lock_and_use(exclusive(1, 2)); },
                [this] { lock_and_use(shared(2, 3)); }};
    }
};

TEST(range_lock, moves_conflicting_holders_from_buckets_into_the_set_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<readers_that_are_gathered>();
}

class guard_that_moves : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        return {[this] {
                    guard first = lock.lock(exclusive(0, 3));
                    const guard second = std::move(first);
                    use(second, lock_mode::exclusive);
                },
                [this] { lock_and_use(exclusive(2, 3)); }, [this] { use_if_free(exclusive(0, 19)); }};
    }
};

TEST(range_lock, finds_a_guard_that_moved_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<guard_that_moves>();
}

class holder_that_changes : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        return {[this] {
                    guard held = lock.lock(shared(0, 5));
                    if (held.try_upgrade()) use(held, lock_mode::exclusive);
                    held.shrink(byte_range::between({.first = 4, .last = 5}));
                },
                [this] { use_if_free(shared(2, 3)); }, [this] { lock_and_use(exclusive(0, 1)); }};
    }
};

TEST(range_lock, upgrades_and_shrinks_ranges_in_buckets_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<holder_that_changes>();
}

class full_bucket : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        for (guard& one : readers_)
            one = lock.lock(shared(0, 1));
        return {[this] { lock_and_use(shared(0, 2)); }, [this] { readers_.front().unlock(); },
                [this] { use_if_free(exclusive(2, 3)); }};
    }
    std::string verdict() override {
        for (guard& one : readers_)
            one.unlock();
        return users_of::verdict();
    }

    std::array<guard, 7> readers_;
};

TEST(range_lock, continues_when_a_bucket_is_full_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<full_bucket>();
}

class buckets_laid_aside : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        return {[this] {
                    for (int i = 0; i != 4; ++i)
                        lock_and_use(exclusive(0, 3));
                },
                [this] { lock_and_use(exclusive(2, 3)); }, [this] { lock_and_use(exclusive(4, 7)); }};
    }
};

TEST(range_lock, abandons_buckets_while_requests_arrive_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<buckets_laid_aside>();
}

class wide_ones_too_often : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        return {[this] { lock_and_use(shared(0, 19)); }, [this] { lock_and_use(shared(0, 19)); },
                [this] { lock_and_use(exclusive(4, 7)); }};
    }
};

TEST(range_lock, abandons_buckets_for_wide_ranges_in_every_schedule) {
    expect_every_schedule_of_two_or_three_right<wide_ones_too_often>();
}

class buckets_and_cancel : public spread_users {
protected:
    std::vector<std::function<void()>> threads() override {
        spread();
        held_ = lock.lock(exclusive(0, 3));
        was_granted_at_once_ = lock.lock_async(request_, exclusive(2, 5));
        return {[this] { held_.unlock(); }, [this] { was_cancelled_ = lock.cancel(request_); },
                [this] { use_if_free(exclusive(4, 7)); }};
    }
    std::string verdict() override {
        if (was_granted_at_once_) return "granted despite a conflict";
        if (request_.completions != 1) return "not completed exactly once";
        if (request_.is_granted == was_cancelled_) return "both granted and cancelled, or neither";
        request_.take().unlock();
        return users_of::verdict();
    }

    guard held_;
    sync::basic_remembered_request<hot_scheduled_atomics> request_;
    bool was_granted_at_once_ = false;
    bool was_cancelled_ = false;
};

TEST(range_lock, grants_or_cancels_requests_that_wait_for_a_bucket_in_every_schedule) {
    expect_every_schedule_right<buckets_and_cancel>({.preemptions_max = 1});
}

// A queue of requests, each of which conflicts with the next ones; they are made before the threads
// begin.
template <class Atomics>
class queue_of : public users_of<Atomics> {
protected:
    using request = sync::basic_remembered_request<Atomics>;

    void ask(std::initializer_list<lock_args> wanted) {
        for (const lock_args& one : wanted)
            was_granted_at_once_ = this->lock.lock_async(requests[asked_++], one) or was_granted_at_once_;
    }
    // Releases all granted ranges, and those that are granted by this, on one thread. No request
    // may remain.
    std::string verdict() override {
        if (was_granted_at_once_) return "granted despite a conflict";
        for (std::size_t left = asked_; left != 0; --left)
            for (std::size_t i = 0; i != asked_; ++i)
                if (requests[i].is_granted) requests[i].take().unlock();
        for (std::size_t i = 0; i != asked_; ++i)
            if (requests[i].completions != 1) return "not completed exactly once";
        return users_of<Atomics>::verdict();
    }

    std::array<request, 4> requests;

private:
    std::size_t asked_ = 0;
    bool was_granted_at_once_ = false;
};

class cancelled_in_the_middle final : public queue_of<scheduled_atomics> {
    std::vector<std::function<void()>> threads() override {
        held_ = lock.try_lock(exclusive(0, 5));
        ask({exclusive(3, 9), exclusive(8, 12), exclusive(0, 12)});
        return {[this] { held_.unlock(); }, [this] { was_cancelled_ = lock.cancel(requests[1]); },
                [this] { (void)lock.cancel(requests[0]); }};
    }
    std::string verdict_of_this() override {
        return was_cancelled_ != requests[1].is_granted ? "" : "both granted and cancelled, or neither";
    }

    guard held_;
    bool was_cancelled_ = false;
};

TEST(range_lock, makes_requests_after_a_cancelled_one_wait_for_the_next_conflict_in_every_schedule) {
    expect_every_schedule_right<cancelled_in_the_middle>();
}

class last_of_several final : public queue_of<scheduled_atomics> {
    std::vector<std::function<void()>> threads() override {
        left_ = lock.try_lock(shared(0, 5));
        right_ = lock.try_lock(shared(4, 12));
        ask({exclusive(0, 12), shared(3, 8)});
        return {[this] { left_.unlock(); }, [this] { right_.unlock(); },
                [this] { use_if_free(shared(11, 15)); }};
    }
    std::string verdict() override {
        if (not requests[0].is_granted) return "not granted although both readers have left";
        return queue_of::verdict();
    }

    guard left_;
    guard right_;
};

TEST(range_lock, grants_a_wide_range_when_the_last_of_several_has_left_in_every_schedule) {
    expect_every_schedule_right<last_of_several>();
}

class moved_while_others_wait final : public queue_of<scheduled_atomics> {
    std::vector<std::function<void()>> threads() override {
        held_ = lock.try_lock(exclusive(0, 5));
        ask({exclusive(3, 9), shared(0, 1)});
        return {[this] {
                    guard moved = std::move(held_);
                    moved.shrink(byte_range::between({.first = 2, .last = 5}));
                },
                [this] { (void)lock.cancel(requests[0]); }, [this] { use_if_free(shared(8, 9)); }};
    }

    guard held_;
};

TEST(range_lock, grants_requests_that_wait_for_a_moved_guard_in_every_schedule) {
    expect_every_schedule_right<moved_while_others_wait>();
}

// Completions that release a range themselves: with one level, all except the first are queued.
template <class Atomics>
class releasing_requests final : public users_of<Atomics> {
    class releasing final : public sync::basic_range_request<Atomics> {
    public:
        ~releasing() = default;
        int completions = 0;

    private:
        void completed(bool) noexcept override {
            ++completions;
            this->take().unlock();
        }
    };

    std::vector<std::function<void()>> threads() override {
        held_ = this->lock.try_lock(exclusive(0, 9));
        for (releasing& one : requests_)
            (void)this->lock.lock_async(one, exclusive(0, 9));
        return {[this] { held_.unlock(); }, [this] { (void)this->lock.cancel(requests_[1]); },
                [this] { this->lock_and_use(exclusive(3, 4)); }};
    }
    std::string verdict_of_this() override {
        for (const releasing& one : requests_)
            if (one.completions != 1) return "not completed exactly once";
        return "";
    }

    typename users_of<Atomics>::guard held_;
    std::array<releasing, 3> requests_;
};

TEST(range_lock, runs_completions_that_cause_each_other_in_every_schedule) {
    expect_every_schedule_right<releasing_requests<scheduled_atomics>>();
}

TEST(range_lock, runs_nested_completions_from_a_queue_in_every_schedule) {
    expect_every_schedule_right<releasing_requests<hot_scheduled_atomics>>({.preemptions_max = 1});
}

}  // namespace
}  // namespace sluice::interleave
