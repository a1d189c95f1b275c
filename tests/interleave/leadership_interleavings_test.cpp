#include <gtest/gtest.h>

#include "sluice/io/loop/leadership.hpp"
#include "tests/interleave/simulated_engine.hpp"

// The threads that run one multiplexer, in every order with few preemptions: which one waits in the
// kernel, and which one it wakes. The loop here is that of io_multiplexer_threads_loop.cpp, reduced
// to these decisions.

namespace sluice::interleave {
namespace {

struct condition {
    void notify_one() { wake_one_on(this); }
};
using leadership = io::leadership<condition>;

/// A part that is omitted, to verify that the exploration detects it.
enum class fault : unsigned char { none, no_hand_on, no_sharing, no_second_look };

/// The work. `everything`: one read, which the kernel completes, one posted item, and the
/// operations that these two start. `posted`: only the item, for which run() waits because of a
/// work_guard; nothing else ends a sleep.
enum class work : unsigned char { everything, posted };

class running final : public scenario {
public:
    running(int runners, work what, fault left_out) : runners_(runners), what_(what), left_out_(left_out) {
        if (what == work::posted) pending_ = 0;
    }

    std::vector<std::function<void()>> threads() override {
        std::vector<std::function<void()>> all;
        for (int i = 0; i < runners_; ++i)
            all.emplace_back([this] { run_all(); });
        all.emplace_back([this] { post(); });
        if (what_ == work::everything) all.emplace_back([this] { complete_read(); });
        return all;
    }
    std::string verdict() override {
        if (done_ != works()) return "run() ended on a thread before all work was done";
        return {};
    }

private:
    [[nodiscard]] int works() const { return what_ == work::everything ? 4 : 1; }

    void run_all() {
        while (run()) {}
    }
    bool run() {
        lock_.lock();
        bool has_run = false;
        for (;;) {
            if (posted_ > 0) {
                --posted_;
                has_run = true;
                user_code();
                break;
            }
            if (ready_ > 0) {
                --ready_;
                has_run = true;
                user_code();
                --pending_;
                break;
            }
            if (is_exhausted()) break;
            wait();
        }
        if (left_out_ != fault::no_hand_on)
            threads_.hand_off(has_work() or is_exhausted(), [this] { wake_leader(); });
        lock_.unlock();
        return has_run;
    }
    void user_code() {
        if (left_out_ != fault::no_sharing) threads_.share_work(has_work());
        ++busy_;
        const bool waits_for_another =
            what_ == work::everything and runners_ > 1 and busy_ == 1 and done_ == 0;
        lock_.unlock();
        step();
        // A receiver may wait for one that runs on another thread.
        while (waits_for_another and done_ == 0)
            sleep_on(&done_, false);
        lock_.lock();
        ++done_;
        record_change();
        wake_all_on(&done_);
        if (what_ == work::posted) {
            guards_ = 0;
        } else if (done_ <= works() / 2) {  // it starts an operation that completes at once
            ++pending_;
            ++ready_;
        }
        --busy_;
    }
    [[nodiscard]] bool has_work() const { return posted_ > 0 or ready_ > 0; }
    [[nodiscard]] bool is_exhausted() const {
        return pending_ == 0 and guards_ == 0 and posted_ == 0 and busy_ == 0;
    }

    void wait() {
        if (threads_.has_leader()) {
            leadership::follower self;
            threads_.follow(self);
            lock_.unlock();
            while (not self.is_woken)
                sleep_on(&self.signal, false);
            lock_.lock();
            threads_.stop_following(self);
            return;
        }
        threads_.lead();
        step();  // the queue of posted items was read before this step
        is_sleeping_ = true;
        step();
        if (posted_ == 0 or left_out_ == fault::no_second_look) {
            threads_.fall_asleep();
            lock_.unlock();
            while (kernel_events_ == 0)
                sleep_on(&kernel_events_, false);
            lock_.lock();
            kernel_events_ = 0;
            threads_.wake_up();
        }
        is_sleeping_ = false;
        if (std::exchange(is_read_complete_, false)) ++ready_;
        threads_.stop_leading();
    }
    void wake_leader() {
        ++kernel_events_;
        record_change();
        wake_one_on(&kernel_events_);
    }

    // Other threads, without the lock.
    void post() {
        step();
        ++posted_;
        record_change();
        step();
        if (is_sleeping_) wake_leader();
        if (what_ == work::posted) return;
        step();
        guards_ = 0;
        record_change();
        wake_leader();
    }
    void complete_read() {
        step();
        is_read_complete_ = true;
        wake_leader();
    }

    int runners_;
    work what_;
    fault left_out_;
    simulated_lock lock_;
    leadership threads_;
    int pending_ = 1;
    int ready_ = 0;
    int busy_ = 0;
    int done_ = 0;
    int posted_ = 0;
    int guards_ = 1;
    int kernel_events_ = 0;
    bool is_sleeping_ = false;
    bool is_read_complete_ = false;
};

report explored(int runners, work what, fault left_out) {
    const limits within{.preemptions_max = runners < 3 ? 2U : 1U};
    return explore([=] { return std::make_unique<running>(runners, what, left_out); }, within);
}

TEST(leadership_interleavings, no_wake_up_is_lost_and_every_thread_returns) {
    for (const work what : {work::everything, work::posted}) {
        for (const int runners : {1, 2, 3}) {
            const report found = explored(runners, what, fault::none);
            EXPECT_EQ(found.problem, "") << runners << " threads";
            EXPECT_TRUE(found.is_complete) << found.schedules << " schedules";
        }
    }
}

TEST(leadership_interleavings, leaving_without_waking_a_successor_is_detected) {
    EXPECT_NE(explored(2, work::everything, fault::no_hand_on).problem, "");
}

TEST(leadership_interleavings, not_sharing_work_is_detected) {
    EXPECT_NE(explored(2, work::everything, fault::no_sharing).problem, "");
}

TEST(leadership_interleavings, sleeping_without_a_second_check_is_detected) {
    EXPECT_NE(explored(1, work::posted, fault::no_second_look).problem, "");
}

}  // namespace
}  // namespace sluice::interleave
