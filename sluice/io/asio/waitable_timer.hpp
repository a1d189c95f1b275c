#pragma once

#include <algorithm>
#include <asio/any_io_executor.hpp>
#include <asio/basic_waitable_timer.hpp>
#include <asio/wait_traits.hpp>
#include <atomic>
#include <chrono>
#include <thread>

#include "sluice/io/asio/socket_object.hpp"

namespace sluice::io {

namespace detail {

/// Returns how long to sleep before the clock is read again.
template <class Clock, class Traits>
[[nodiscard]] typename Clock::duration asio_sleep_until(const typename Clock::time_point& when) {
    using duration = typename Clock::duration;
    const auto now = Clock::now();
    // Without the comparison, the difference from the earliest time point would overflow.
    const duration left = when <= now ? duration::zero() : when - now;
    // Longer waits sleep more than once.
    constexpr duration longest = std::chrono::hours(24);
    return std::clamp<duration>(Traits::to_wait_duration(left), duration::zero(), longest);
}

template <class Clock>
class asio_clock_core final : public asio_core_base {
public:
    using asio_core_base::asio_core_base;

    typename Clock::time_point expiry{};
    std::atomic<std::size_t> waits{0};  // pending ones; the count orders no other access
};

/// A wait for a clock. Reads the clock again after each sleep, because it may have been set back.
template <class Clock, class Traits>
class asio_clock_wait {
public:
    asio_clock_wait(asio_clock_core<Clock>& core, std::nullptr_t) noexcept
        : core_(core), expiry_(core.expiry) {
        core_.waits.fetch_add(1, std::memory_order_relaxed);
    }
    asio_clock_wait(const asio_clock_wait&) = delete;
    asio_clock_wait& operator=(const asio_clock_wait&) = delete;
    ~asio_clock_wait() { core_.waits.fetch_sub(1, std::memory_order_relaxed); }

    [[nodiscard]] auto sender() {
        io_multiplexer& multiplexer = core_.context.multiplexer();
        return async_sleep(multiplexer,
                           multiplexer.now() + std::chrono::duration_cast<io_multiplexer::duration>(
                                                   asio_sleep_until<Clock, Traits>(expiry_)));
    }
    [[nodiscard]] bool wants_more() const { return Clock::now() < expiry_; }
    [[nodiscard]] static auto finish(result<void>&& outcome) noexcept {
        return std::tuple(asio_outcome(outcome));
    }

private:
    asio_clock_core<Clock>& core_;
    const typename Clock::time_point expiry_;  // its value when the wait began
};

}  // namespace detail

namespace asio_names {

/// Asio's basic_waitable_timer on our multiplexer, for any clock. Setting it again cancels its
/// waits. Completion, cancellation and allocation are those of asio_stream.
template <class Clock, class Traits = asio::wait_traits<Clock>, class Executor = asio::any_io_executor>
class basic_waitable_timer {
public:
    using executor_type = Executor;
    using clock_type = Clock;
    using traits_type = Traits;
    using duration = typename Clock::duration;
    using time_point = typename Clock::time_point;
    template <class Other>
    struct rebind_executor {
        using other = basic_waitable_timer<Clock, Traits, Other>;
    };

    explicit basic_waitable_timer(const executor_type& executor)
        : executor_(executor), core_(detail::make_asio_core<core>(detail::asio_context_of(executor_))) {}
    basic_waitable_timer(const executor_type& executor, const time_point& expiry)
        : basic_waitable_timer(executor) {
        core_->expiry = expiry;
    }
    basic_waitable_timer(const executor_type& executor, const duration& after)
        : basic_waitable_timer(executor, Clock::now() + after) {}
    template <asio_execution_context Context>
    explicit basic_waitable_timer(Context& context)
        : basic_waitable_timer(executor_type(context.get_executor())) {}
    template <asio_execution_context Context, class When>
    basic_waitable_timer(Context& context, const When& when)
        : basic_waitable_timer(executor_type(context.get_executor()), when) {}
    basic_waitable_timer(basic_waitable_timer&&) noexcept = default;
    basic_waitable_timer& operator=(basic_waitable_timer&& other) noexcept {
        if (this == &other) return *this;
        cancel();
        executor_ = other.executor_;
        core_ = std::move(other.core_);
        return *this;
    }
    ~basic_waitable_timer() { cancel(); }

    [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }
    [[nodiscard]] time_point expiry() const noexcept { return core_->expiry; }

    /// Returns the number of cancelled waits, which end with operation_aborted unless they were
    /// faster.
    std::size_t expires_at(const time_point& when) noexcept {
        const std::size_t ended = cancel();
        core_->expiry = when;
        return ended;
    }
    std::size_t expires_after(const duration& time) noexcept { return expires_at(Clock::now() + time); }
    std::size_t cancel() noexcept {
        if (core_ == nullptr) return 0;
        const std::size_t waits = core_->waits.load(std::memory_order_relaxed);
        core_->cancel_all(core_);
        return waits;
    }

    /// Blocks: until the time has come.
    void wait(asio::error_code& why) {
        why.clear();
        wait();
    }
    void wait() {
        while (Clock::now() < core_->expiry)
            std::this_thread::sleep_for(detail::asio_sleep_until<Clock, Traits>(core_->expiry));
    }

    /// Cancels the wait that began first.
    std::size_t cancel_one() {
        const std::size_t waits = core_->waits.load(std::memory_order_relaxed);
        if (waits != 0) core_->context.act([core = core_]() noexcept { core->cancel_oldest(); });
        return std::min<std::size_t>(waits, 1);
    }

    /// void(asio::error_code).
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_wait(Token&& token = Token()) {
        using work = detail::asio_clock_wait<Clock, Traits>;
        return detail::asio_initiate<void(asio::error_code), work>(core_, executor_, token, nullptr);
    }

private:
    using core = detail::asio_clock_core<Clock>;

    executor_type executor_;
    std::shared_ptr<core> core_;
};

}  // namespace asio_names
}  // namespace sluice::io
