#include <gtest/gtest.h>

#include "sluice/io/loop/pinned_word.hpp"
#include "tests/interleave/simulated_engine.hpp"

// An operation that waits for an external_work, in every order with few preemptions: one thread
// starts it, one cancels it, one completes it, and one runs the loop. The functions are those of
// io_multiplexer_threads.cpp.

namespace sluice::interleave {
namespace {

/// A rule that is omitted, to verify that the exploration detects it.
enum class fault : unsigned char {
    none,
    takes_no_notes,         // the thread that has pinned it does not check for events
    finishes_while_pinned,  // the loop completes it although a call is in progress
    ends_while_pinned       // the canceller calls end() although a call is in progress
};

class external_wait final : public scenario {
public:
    /// `completes`: by itself, or only because of end().
    external_wait(bool completes, fault left_out) : completes_(completes), left_out_(left_out) {}

    std::vector<std::function<void()>> threads() override {
        std::vector<std::function<void()>> all{[this] { start(); }, [this] { cancel(); }, [this] { run(); }};
        if (completes_) all.emplace_back([this] { complete_when_begun(); });
        return all;
    }
    std::string verdict() override {
        if (calls_of_complete_ != 1) return "the work did not complete exactly once";
        if (dones_ != 1) return "the operation did not end exactly once";
        return problem_;
    }

private:
    enum class stage : unsigned char { idle, pinned, in_flight, done };

    // The work: completes once.
    void begin_work() {
        call();
        has_begun_ = true;
        record_change();
        wake_all_on(&has_begun_);
        step();
        return_from_call();
    }
    void end_work() {
        call();
        step();
        complete();
        return_from_call();
    }
    void call() {
        if (is_in_call_) problem_ = "two calls of the work at the same time";
        is_in_call_ = true;
    }
    void return_from_call() {
        is_in_call_ = false;
        if (at_ == stage::done) problem_ = "the operation ended during a call of its work";
    }
    void complete() {
        if (std::exchange(is_completed_, true)) return;  // by the other thread
        ++calls_of_complete_;
        step();
        is_handed_over_ = true;
        record_change();
        wake_all_on(&is_handed_over_);
    }
    void complete_when_begun() {
        while (not has_begun_)
            sleep_on(&has_begun_, false);
        complete();
    }

    // The multiplexer.
    void start() {
        lock_.lock();
        at_ = stage::pinned;
        lock_.unlock();
        begin_work();
        lock_.lock();
        unpin();
        lock_.unlock();
    }
    void unpin() {
        take_completions();
        at_ = stage::in_flight;
        if (left_out_ == fault::takes_no_notes) return;
        switch (io::pinned_word(word_).take()) {
            case io::pinned_word::step::nothing:
                break;
            case io::pinned_word::step::finish:
                finish();
                break;
            case io::pinned_word::step::end:
                end_pinned();
                break;
        }
    }
    void end_pinned() {
        at_ = stage::pinned;
        lock_.unlock();
        end_work();
        lock_.lock();
        unpin();
    }
    void cancel() {
        lock_.lock();
        while (at_ == stage::idle) {
            lock_.unlock();
            sleep_on(&has_begun_, false);
            lock_.lock();
        }
        if (at_ == stage::pinned and left_out_ != fault::ends_while_pinned) {
            io::pinned_word(word_).record_cancellation();
        } else if (at_ != stage::done) {
            end_pinned();
        }
        lock_.unlock();
    }
    void take_completions() {
        if (not std::exchange(is_handed_over_, false)) return;
        if (at_ == stage::pinned and left_out_ != fault::finishes_while_pinned) {
            io::pinned_word(word_).record_completion();
        } else {
            finish();
        }
    }
    void finish() {
        at_ = stage::done;
        ++dones_;
        record_change();
        wake_all_on(&is_handed_over_);
    }
    void run() {
        lock_.lock();
        for (;;) {
            take_completions();
            if (at_ == stage::done) break;
            lock_.unlock();
            sleep_on(&is_handed_over_, false);
            lock_.lock();
        }
        lock_.unlock();
    }

    bool completes_;
    fault left_out_;
    simulated_lock lock_;
    stage at_ = stage::idle;
    std::uint64_t word_ = 0;
    bool has_begun_ = false;
    bool is_in_call_ = false;
    bool is_completed_ = false;
    bool is_handed_over_ = false;
    int calls_of_complete_ = 0;
    int dones_ = 0;
    std::string problem_;
};

report explored(bool completes, fault left_out) {
    return explore([=] { return std::make_unique<external_wait>(completes, left_out); });
}

TEST(pinned_interleavings, an_external_wait_ends_once_and_not_during_a_call_of_its_work) {
    for (const bool completes : {false, true}) {
        const report found = explored(completes, fault::none);
        EXPECT_EQ(found.problem, "") << completes;
        EXPECT_TRUE(found.is_complete) << found.schedules;
        EXPECT_GT(found.schedules, 50U);
    }
}

TEST(pinned_interleavings, ignoring_events_is_detected) {
    EXPECT_NE(explored(false, fault::takes_no_notes).problem, "");
    EXPECT_NE(explored(true, fault::takes_no_notes).problem, "");
}

TEST(pinned_interleavings, finishing_during_a_call_is_detected) {
    EXPECT_NE(explored(true, fault::finishes_while_pinned).problem, "");
}

TEST(pinned_interleavings, ending_during_a_call_is_detected) {
    EXPECT_NE(explored(false, fault::ends_while_pinned).problem, "");
}

}  // namespace
}  // namespace sluice::interleave
