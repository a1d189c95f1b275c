#include <gtest/gtest.h>

#include <optional>

#include "sluice/sync/range_lock_sender.hpp"
#include "sluice/sync/range_lock_testing.hpp"
#include "tests/execution_model/execution.hpp"
#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {
namespace {

SLUICE_EXECUTION_TRAITS(model, execution_model, execution_model, _t);
using lock_type = sync::basic_range_lock<scheduled_atomics>;

// Requests a stop once, of one callback, as std::inplace_stop_source would.
class stop_source {
    struct callback_base {
        virtual void call() noexcept = 0;

    protected:
        ~callback_base() = default;
    };

public:
    void request_stop() noexcept {
        latch_.lock();
        is_requested_ = true;
        running_ = std::exchange(callback_, nullptr);
        caller_ = this_thread();
        latch_.unlock();
        if (running_ != nullptr) running_->call();
        is_over_.store(1, std::memory_order_release);
        scheduled_atomics::wake_one(is_over_);
    }

    template <class F>
    class callback final : callback_base {
    public:
        callback(stop_source* from, F f) noexcept : from_(*from), f_(f) {
            from_.latch_.lock();
            const bool is_late = from_.is_requested_;
            if (not is_late) from_.callback_ = this;
            from_.latch_.unlock();
            if (is_late) f_();
        }
        callback(callback&&) = delete;
        ~callback() {
            from_.latch_.lock();
            const bool runs_elsewhere = from_.running_ == this and from_.caller_ != this_thread();
            from_.callback_ = nullptr;
            from_.latch_.unlock();
            while (runs_elsewhere and from_.is_over_.load(std::memory_order_acquire) == 0)
                scheduled_atomics::wait(from_.is_over_, 0, scheduled_atomics::time_point::max());
        }

    private:
        void call() noexcept override { f_(); }
        stop_source& from_;
        F f_;
    };

    struct token {
        template <class F>
        struct callback_type : callback<F> {
            callback_type(token of, F f) noexcept : callback<F>(of.from, f) {}
        };
        [[nodiscard]] bool stop_requested() const noexcept {
            step();
            return from->is_requested_;
        }
        stop_source* from;
    };

private:
    sync::basic_small_mutex<scheduled_atomics> latch_;
    bool is_requested_ = false;
    callback_base* callback_ = nullptr;
    callback_base* running_ = nullptr;
    const void* caller_ = nullptr;
    scheduled_atomics::atomic<std::uint32_t> is_over_{0};
};

// One thread starts, another releases the range, the third requests a stop; the thread that
// completes destroys the state.
class racing_stop final : public scenario {
    struct receiver {
        using receiver_concept = execution_model::receiver_t;
        struct environment {
            stop_source::token token;
            [[nodiscard]] auto query(execution_model::get_stop_token_t) const noexcept { return token; }
        };
        void set_value(lock_type::guard held) && noexcept {
            racing_stop& in = *to;
            in.state_.reset();
            in.grants_ += held ? 1 : 100;
        }
        void set_stopped() && noexcept {
            racing_stop& in = *to;
            in.state_.reset();
            ++in.stops_;
        }
        [[nodiscard]] environment get_env() const noexcept { return {{&to->source_}}; }
        racing_stop* to;
    };

    std::vector<std::function<void()>> threads() override {
        held_ = lock_.try_lock(sync::exclusive(0, 5));
        state_.emplace(lock_, sync::exclusive(3, 9), receiver{this});
        return {[this] { state_->start(); }, [this] { held_.unlock(); }, [this] { source_.request_stop(); }};
    }
    std::string verdict() override {
        if (grants_ + stops_ != 1) return "not completed exactly once";
        if (not lock_.try_lock(sync::exclusive(0, 9))) return "the range is still locked";
        return "";
    }

    lock_type lock_;
    stop_source source_;
    lock_type::guard held_;
    std::optional<sync::detail::lock_operation<model, scheduled_atomics, receiver>> state_;
    int grants_ = 0;
    int stops_ = 0;
};

TEST(lock_sender, completes_once_in_every_schedule_of_start_grant_and_stop) {
    const report found = explore([] { return std::make_unique<racing_stop>(); }, {.preemptions_max = 3});
    EXPECT_EQ(found.problem, "");
    EXPECT_TRUE(found.is_complete) << "after " << found.schedules << " schedules";
    EXPECT_GT(found.schedules, 2000U);
    RecordProperty("schedules", static_cast<int>(found.schedules));
}

}  // namespace
}  // namespace sluice::interleave
