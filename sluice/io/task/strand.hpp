#pragma once

#include <coroutine>
#include <cstddef>
#include <expected>
#include <optional>
#include <utility>

#include "sluice/base/intrusive_mpsc_queue.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/task/turn_count.hpp"

namespace sluice::io {

/// Items that run one at a time on a multiplexer for several threads: each runs on some thread of
/// it, in the order in which they were posted. The writes of one item are visible to the next.
///
/// `co_await strand.schedule()` continues as such an item; `serialised(strand, receiver)` calls a
/// receiver as one. No lock is held while an item runs, and none is taken.
///
/// Thread safety: any thread may post. The strand outlives its last item's run, and so does the
/// multiplexer: join its threads before destroying them. Allocates: nothing. Complexity: O(1).
///
/// Invariants:
///   1. `posted_` counts the items from before their push until after their run; see turn_count.
///   2. The strand's own item is queued on the multiplexer, or running, exactly while `posted_` is
///      not 0: the thread that changes it from 0 posts it, and only its run changes it back.
class strand final : private posted_item {
public:
    explicit strand(io_multiplexer& on) noexcept : multiplexer_(on) {}
    strand(const strand&) = delete;
    strand& operator=(const strand&) = delete;
    ~strand() { ENSURE(posted_.is_idle(), "destroyed while items are posted"); }

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return multiplexer_; }

    /// Invokes `item` when its turn comes. Any thread. Blocks: no.
    void post(posted_item& item) noexcept;

    /// Returns whether the calling thread runs an item of this strand.
    [[nodiscard]] bool runs_here() const noexcept { return running_ == this; }

    /// `co_await strand.schedule()`: continues in the strand, until the coroutine next waits for
    /// something else. Suspends: always.
    [[nodiscard]] auto schedule() noexcept { return turn(*this); }

private:
    // Lives in the frame of the coroutine.
    class [[nodiscard]] turn final : private posted_item {
    public:
        explicit turn(strand& of) noexcept : of_(of) {}
        turn(const turn&) = delete;
        turn& operator=(const turn&) = delete;

        [[nodiscard]] static constexpr bool await_ready() noexcept { return false; }
        template <class Promise>
        void await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
            waiter_ = waiter;
            io_multiplexer& to = of_.multiplexer();
            if constexpr (requires { waiter.promise().set_place(to); }) waiter.promise().set_place(to);
            of_.post(*this);  // the coroutine may already be running, and this be gone
        }
        static void await_resume() noexcept {}

    private:
        void invoke() noexcept override { waiter_.resume(); }

        strand& of_;
        std::coroutine_handle<> waiter_;
    };

    void invoke() noexcept override;

    static inline thread_local constinit const strand* running_ = nullptr;

    io_multiplexer& multiplexer_;
    intrusive_mpsc_queue<posted_item, &posted_item::link> items_;
    turn_count<> posted_;
};

/// A receiver that calls another one as an item of a strand; created by serialised(). Both signals
/// are given together, when the operation is done.
template <class Receiver, class Outcome>
class serialised_receiver final : private posted_item {
public:
    serialised_receiver(strand& in, Receiver&& to) noexcept : in_(&in), to_(std::move(to)) {}
    /// Only before the operation is started.
    serialised_receiver(serialised_receiver&& other) noexcept : in_(other.in_), to_(std::move(other.to_)) {}

    void set_value(Outcome&& outcome) noexcept { outcome_.emplace(std::move(outcome)); }
    void set_done() noexcept { in_->post(*this); }

private:
    void invoke() noexcept override {
        Outcome outcome = *std::exchange(outcome_, std::nullopt);
        to_.set_value(std::move(outcome));
        to_.set_done();  // this may be gone, or in use again
    }

    strand* in_;
    Receiver to_;
    std::optional<Outcome> outcome_;
};

/// Gives the signals of an operation in a strand: `connect(what, serialised<result_type>(strand,
/// receiver))`, where `result_type` is the sender's. As without a strand, the state may be started
/// again or destroyed from the done signal; started() is false before that, while the signals wait
/// in the strand. Signals of one direction of a stream enter the strand in the order in which
/// threads give them: to keep the stream's order, have one operation of a direction pending at a
/// time.
template <class Outcome, class Receiver>
[[nodiscard]] auto serialised(strand& in, Receiver to) noexcept {
    return serialised_receiver<Receiver, Outcome>(in, std::move(to));
}

}  // namespace sluice::io
