#pragma once

#include <cerrno>
#include <concepts>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "sluice/io/task/call_threads.hpp"
#include "sluice/vfs/domain/discardable.hpp"
#include "sluice/vfs/domain/inline_call_slot.hpp"
#include "sluice/vfs/domain/inline_policy.hpp"
#include "sluice/vfs/domain/inline_state.hpp"

namespace sluice::vfs {

class fs_domain;
template <class Awaiter>
class domain_call_awaiter;

/// Whether a call may wait for another call of its domain, as those of a change feed do. Such a
/// call does not run on a loop while other calls run on workers: the loop would wait with it.
enum class waits_for_calls : bool { no, yes };

/// By getrusage(2).
[[nodiscard]] std::uint64_t count_sleeps_of_thread() noexcept;

struct fs_domain_options {
    std::string name{};  // for status and logs: where it is mounted, or the image
    call_policy policy = call_policy::always_inline;
    /// Also with the clock that calls are measured by.
    io::call_threads_options threads{.threads_max = 8};
    /// How often the calling thread has slept so far: given up its processor by itself.
    std::uint64_t (*count_sleeps)() noexcept = count_sleeps_of_thread;
};

/// A failure domain: one mounted file system, or one disk-image engine, which may be slow, or hang,
/// without the others. A call is blocking file-system work, a plain closure: it touches its
/// arguments, its node and its volume, nothing else. It runs inline, on the loop that asks for it,
/// or offloaded, on a worker of this domain and of no other. Workers start when they are needed;
/// the queue is first in, first out.
///
/// Monitor; `is_inline` is atomic. Thread safety: run() on the loop's thread, everything
/// else on any. The volumes of the domain hold it, and the loops outlive it. Allocates:
/// in starting a worker.
class fs_domain : public std::enable_shared_from_this<fs_domain> {
public:
    /// Allocates: yes. Errors: none; workers that cannot be started show later, or by
    /// start_first_worker().
    explicit fs_domain(fs_domain_options options);
    fs_domain(const fs_domain&) = delete;
    fs_domain& operator=(const fs_domain&) = delete;
    /// As io::call_threads: a call that does not end keeps its thread. A process that ends while
    /// has_stuck_calls() must use _Exit, because the objects of that call must not be destroyed.
    ~fs_domain() = default;

    /// Returns a number that is unique in this process; never 0.
    [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] call_policy policy() const noexcept { return state_.policy(); }

    /// Whether calls may run on a loop now. It may change at any time; one late call is harmless.
    [[nodiscard]] bool is_inline() const noexcept { return state_.is_inline(); }
    [[nodiscard]] bool is_inline(waits_for_calls waits) const noexcept {
        return waits == waits_for_calls::yes ? policy() == call_policy::always_inline : is_inline();
    }

    /// No call runs inline from now on: for the share option `offload = always`.
    void offload_always() noexcept;
    /// A watchdog has seen an inline call that does not end, and its thread asleep: calls
    /// are offloaded from now on, until they have proved to be quick again. Does nothing if
    /// they are always inline.
    void record_blocked_call() noexcept;

    /// `co_await domain.run(loop, [&] { return node->status(); })`: carries out the call where it
    /// may run. The coroutine, which runs on `loop`, goes on there with what the call returned,
    /// which must not be void. Inline, it does not suspend. What the call refers to outlives the
    /// await, which has no end before the call's. Suspends. Allocates: nothing here.
    template <std::invocable Call>
    [[nodiscard]] auto run(io::io_multiplexer& loop, Call call,
                           waits_for_calls waits = waits_for_calls::no) noexcept;

    /// The same for a call that is not needed any more once its request is cancelled. Gives a
    /// std::optional, which is empty if `by` has cancelled the call before it began, also inline.
    /// Removals and closes are not to be cancelled.
    template <std::invocable Call>
    [[nodiscard]] auto run(io::io_multiplexer& loop, io::call_cancellation& by, Call call,
                           waits_for_calls waits = waits_for_calls::no) noexcept;

    /// Carries out a call on a worker, inline domain or not: for what may take long. `by` may be
    /// null; a call that it has cancelled gives the error ECANCELED. Suspends.
    template <std::invocable Call>
    [[nodiscard]] auto offload(io::io_multiplexer& loop, io::call_cancellation* by, Call call) noexcept;

    /// Destroys a node, a listing or a watch, here if calls run inline, and otherwise on a
    /// worker; without a wait. `needs`, which is released after it on the same thread, is what
    /// must exist until then, such as its volume. With `offloaded::yes`, for what takes long,
    /// always on a worker. Any thread.
    /// Allocates: nothing. Blocks: inline, for the file system.
    enum class offloaded : bool { as_calls, yes };
    void discard(std::unique_ptr<discardable> what, std::shared_ptr<const void> needs = {},
                 offloaded where = offloaded::as_calls) noexcept;
    /// The same for what may wait for another call of the domain.
    void discard(std::unique_ptr<discardable> what, std::shared_ptr<const void> needs,
                 waits_for_calls waits) noexcept {
        discard(std::move(what), std::move(needs), is_inline(waits) ? offloaded::as_calls : offloaded::yes);
    }

    /// Starts a worker if there is none. Without one, the first call that finds
    /// none runs on the loop.
    /// Errors: EAGAIN.
    [[nodiscard]] result<void> start_first_worker() noexcept { return workers_.start_first_thread(); }

    /// Returns the figures of the workers. Calls that run inline are not counted.
    [[nodiscard]] io::call_statistics statistics() const noexcept { return workers_.statistics(); }
    /// Whether a call is running that must end before the domain and what it uses can be destroyed.
    [[nodiscard]] bool has_stuck_calls() const noexcept { return statistics().running != 0; }

    /// Whether the calling thread may call the file system now: on a loop, or
    /// in a call. Any thread.
    [[nodiscard]] bool may_call_here() const noexcept { return is_inline() or of_this_call() != nullptr; }
    /// The domain whose call the calling thread is carrying out; null outside of calls.
    [[nodiscard]] static fs_domain* of_this_call() noexcept;

    /// A call that is made on a loop without run(): the watchdog sees it for as long as
    /// this exists. Not nested.
    class inline_call {
    public:
        explicit inline_call(fs_domain& of) noexcept : of_(of) { of_.begin_inline_call(); }
        inline_call(const inline_call&) = delete;
        inline_call& operator=(const inline_call&) = delete;
        ~inline_call() { of_.end_inline_call(); }

    private:
        fs_domain& of_;
    };

private:
    template <class Call>
    class placed_call;

    void begin_inline_call() noexcept;
    void end_inline_call() noexcept;
    void begin_offloaded_call() noexcept;
    void end_offloaded_call() noexcept;
    void start_measuring(inline_policy::measure what) noexcept;
    void end_measuring() noexcept;
    [[nodiscard]] clock_source::steady_time now() const noexcept;

    const std::uint32_t number_;
    const std::string name_;
    basic_inline_state<sync::real_atomics> state_;
    const clock_source* const clock_;
    std::uint64_t (*const count_sleeps_)() noexcept;
    inline_policy inline_policy_;
    io::call_threads workers_;
};

/// A call and what surrounds it.
template <class Call>
class fs_domain::placed_call {
public:
    placed_call(fs_domain& domain, Call call) noexcept : domain_(domain), call_(std::move(call)) {}

    auto operator()() noexcept {
        domain_.begin_offloaded_call();
        auto outcome = call_();
        domain_.end_offloaded_call();
        return outcome;
    }
    auto carry_out_inline() noexcept {
        const inline_call now(domain_);
        return call_();
    }
    [[nodiscard]] fs_domain& domain() const noexcept { return domain_; }

private:
    fs_domain& domain_;
    Call call_;
};

/// The awaiter that fs_domain::run creates: that of the workers, which finds the outcome ready if
/// the call may run here. May be moved until it is awaited.
template <class Awaiter>
class [[nodiscard]] domain_call_awaiter {
public:
    domain_call_awaiter(Awaiter offloaded, waits_for_calls waits) noexcept
        : offloaded_(std::move(offloaded)), waits_(waits) {}

    [[nodiscard]] bool await_ready() noexcept {
        if (offloaded_.await_ready()) return true;  // cancelled
        if (not offloaded_.call().domain().is_inline(waits_)) return false;
        offloaded_.complete(offloaded_.call().carry_out_inline());
        return true;
    }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { offloaded_.await_suspend(waiter); }
    [[nodiscard]] auto await_resume() noexcept { return offloaded_.await_resume(); }

private:
    Awaiter offloaded_;
    waits_for_calls waits_;
};

/// The awaiter that fs_domain::offload creates. May be moved until it is awaited.
template <class Awaiter>
class [[nodiscard]] offloaded_call_awaiter {
public:
    using value_type = Awaiter::value_type;

    explicit offloaded_call_awaiter(Awaiter calling) noexcept : calling_(std::move(calling)) {}

    [[nodiscard]] bool await_ready() const noexcept { return calling_.await_ready(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { calling_.await_suspend(waiter); }
    [[nodiscard]] value_type await_resume() noexcept {
        auto outcome = calling_.await_resume();
        if (not outcome) return failure({ECANCELED, "call"});
        return *std::move(outcome);
    }

private:
    Awaiter calling_;
};

template <std::invocable Call>
auto fs_domain::offload(io::io_multiplexer& loop, io::call_cancellation* by, Call call) noexcept {
    return offloaded_call_awaiter(workers_.run(loop, by, placed_call<Call>(*this, std::move(call))));
}

template <std::invocable Call>
auto fs_domain::run(io::io_multiplexer& loop, Call call, waits_for_calls waits) noexcept {
    return domain_call_awaiter(workers_.run(loop, placed_call<Call>(*this, std::move(call))), waits);
}

template <std::invocable Call>
auto fs_domain::run(io::io_multiplexer& loop, io::call_cancellation& by, Call call,
                    waits_for_calls waits) noexcept {
    return domain_call_awaiter(workers_.run(loop, &by, placed_call<Call>(*this, std::move(call))), waits);
}

}  // namespace sluice::vfs
