#pragma once

#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/base/execution_traits.hpp"
#include "sluice/io/sender/atomic_sender.hpp"

// Our senders as senders of std::execution (P2300), of stdexec, or of anything shaped like them.
// This header includes neither: SLUICE_EXECUTION_TRAITS (sluice/base/execution_traits.hpp) collects
// the required names of one, in the program that uses it.
//
//     #include <stdexec/execution.hpp>
//     #include "sluice/io/sender/execution.hpp"
//     SLUICE_EXECUTION_TRAITS(my_execution, stdexec, stdexec, _t);
//     using bridge = sluice::io::execution_bridge<my_execution>;
//
//     stdexec::sender auto read = bridge::as_sender(async_read(handle, request))
//                               | stdexec::then([](std::span<std::byte> got) { … });
//
// The difference that it bridges: a P2052 receiver gets the value first, and later the signal that
// the state may be destroyed. A P2300 receiver may destroy the state inside its only completion, so
// it is completed at the second signal.

namespace sluice::io {

namespace detail {

// --- delivery of an outcome
// ------------------------------------------------------------------------------------------

template <class Execution, class Value>
struct value_signature {
    using type = typename Execution::set_value(Value);
};
template <class Execution>
struct value_signature<Execution, void> {
    using type = typename Execution::set_value();
};

// set_value(the transferred buffers or count), set_error(error), and set_stopped for an operation
// that a stop request has ended.
struct by_channel {
    template <class Execution, class Result>
    using signatures = typename Execution::template completion_signatures<
        typename value_signature<Execution, typename Result::value_type>::type,
        typename Execution::set_error(error), typename Execution::set_stopped()>;

    template <class Execution, class Result, class Receiver>
    static void deliver(Result&& outcome, bool stop_requested, Receiver&& to) noexcept {
        if (outcome.has_value()) {
            if constexpr (std::is_void_v<typename Result::value_type>) {
                typename Execution::set_value{}(std::move(to));
            } else {
                typename Execution::set_value{}(std::move(to), *std::move(outcome));
            }
        } else if (stop_requested and outcome.error() == std::errc::operation_canceled) {
            typename Execution::set_stopped{}(std::move(to));
        } else {
            typename Execution::set_error{}(std::move(to), outcome.error());
        }
    }
};

// set_value(the whole result), and set_stopped as above: for users without an error channel.
struct as_whole {
    template <class Execution, class Result>
    using signatures =
        typename Execution::template completion_signatures<typename Execution::set_value(Result),
                                                           typename Execution::set_stopped()>;

    template <class Execution, class Result, class Receiver>
    static void deliver(Result&& outcome, bool stop_requested, Receiver&& to) noexcept {
        const bool stopped =
            stop_requested and not outcome.has_value() and outcome.error() == std::errc::operation_canceled;
        if (stopped) {
            typename Execution::set_stopped{}(std::move(to));
        } else {
            typename Execution::set_value{}(std::move(to), std::move(outcome));
        }
    }
};

// A time: it comes, or a stop request comes before it.
struct as_time {
    template <class Execution, class>
    using signatures = typename Execution::template completion_signatures<typename Execution::set_value(),
                                                                          typename Execution::set_stopped()>;

    template <class Execution, class Result, class Receiver>
    static void deliver(Result&& outcome, bool, Receiver&& to) noexcept {
        if (outcome.has_value()) {
            typename Execution::set_value{}(std::move(to));
        } else {
            typename Execution::set_stopped{}(std::move(to));
        }
    }
};

// --- operation states
// ------------------------------------------------------------------------------------------

/// The operation state of I/O. start() may be called on any thread, a stop requested from any; it
/// completes on the multiplexer's.
template <class Execution, class Delivery, class Sender, class Receiver>
class execution_operation {
public:
    using operation_state_concept = typename Execution::operation_state_concept;

    execution_operation(Sender from, Receiver to) noexcept
        : receiver_(std::move(to)), io_(std::move(from), relay{this}) {}
    execution_operation(execution_operation&&) = delete;

    void start() & noexcept {
        const bool fresh = io_.claim();
        ENSURE(fresh, "an operation state is started once");
        // Claimed before the callback exists, because the callback may cancel at once; launched
        // after, because this may be gone when launch() returns.
        callback_.emplace(stop_token_of<Execution>(receiver_), canceller{this});
        io_.launch();
    }

private:
    struct relay {
        execution_operation* self;
        void set_value(typename Sender::result_type&& outcome) noexcept {
            self->outcome_.emplace(std::move(outcome));
        }
        void set_done() noexcept { self->complete(); }
    };
    struct canceller {
        execution_operation* self;
        void operator()() const noexcept { self->io_.cancel(); }
    };
    using callback_type = stop_callback_of<Execution, Receiver, canceller>;

    void complete() noexcept {
        // Waits for a canceller that runs on another thread: none can come after this.
        callback_.reset();
        const bool stop_requested = stop_token_of<Execution>(receiver_).stop_requested();
        // Locals, because completing destroys this.
        auto outcome = *std::move(outcome_);
        auto to = std::move(receiver_);
        Delivery::template deliver<Execution>(std::move(outcome), stop_requested, std::move(to));
    }

    Receiver receiver_;
    std::optional<typename Sender::result_type> outcome_;
    std::optional<callback_type> callback_;
    atomic_io_operation_connection<Sender, relay> io_;
};

/// The operation state of schedule(): its own posted item.
template <class Execution, class Receiver>
class schedule_operation final : posted_item {
public:
    using operation_state_concept = typename Execution::operation_state_concept;

    schedule_operation(io_multiplexer& multiplexer, Receiver to) noexcept
        : multiplexer_(&multiplexer), receiver_(std::move(to)) {}

    void start() & noexcept { multiplexer_->post(*this); }

private:
    void invoke() noexcept override {
        auto to = std::move(receiver_);  // completing destroys this
        if (stop_token_of<Execution>(to).stop_requested()) {
            typename Execution::set_stopped{}(std::move(to));
        } else {
            typename Execution::set_value{}(std::move(to));
        }
    }

    io_multiplexer* multiplexer_;
    Receiver receiver_;
};

}  // namespace detail

/// Joins our senders with an implementation of std::execution, described by
/// SLUICE_EXECUTION_TRAITS.
///
/// Operation states may be started, and stops requested, on any thread. Every completion comes on
/// the multiplexer's thread, and some thread has to run the multiplexer: sync_wait on that very
/// thread would wait indefinitely. Completion inside start() happens only there, if the I/O
/// completes at once and no other completion is being delivered; so a loop of inline completions
/// does not nest deeper than one.
///
/// Stop requests cancel the I/O. It then completes with set_stopped if nothing had been
/// transferred, and as usual if it was faster. ECANCELED without a stop request is an error like
/// others. Allocates, locks, throws: never.
template <class Execution>
struct execution_bridge {
    class scheduler;

    /// The completion context of a sender: its environment.
    class attributes {
    public:
        explicit attributes(io_multiplexer& multiplexer) noexcept : multiplexer_(&multiplexer) {}

        template <class Signal>
        [[nodiscard]] scheduler query(
            typename Execution::template get_completion_scheduler<Signal>) const noexcept {
            return scheduler(*multiplexer_);
        }

    private:
        io_multiplexer* multiplexer_;
    };

    /// The sender that as_sender and as_result return. To connect it again, copy it.
    template <class Sender, class Delivery>
    class io_sender {
    public:
        using sender_concept = typename Execution::sender_concept;
        using completion_signatures =
            typename Delivery::template signatures<Execution, typename Sender::result_type>;

        explicit io_sender(Sender from) noexcept : from_(std::move(from)) {}

        template <class Receiver>
        [[nodiscard]] auto connect(Receiver to) && noexcept {
            return detail::execution_operation<Execution, Delivery, Sender, Receiver>(std::move(from_),
                                                                                      std::move(to));
        }
        template <class Receiver>
        [[nodiscard]] auto connect(Receiver to) const& noexcept {
            return detail::execution_operation<Execution, Delivery, Sender, Receiver>(from_, std::move(to));
        }
        [[nodiscard]] attributes get_env() const noexcept { return attributes(from_.multiplexer()); }

    private:
        Sender from_;
    };

    /// The sender that scheduler::schedule returns. Its completion never comes inside start().
    class schedule_sender {
    public:
        using sender_concept = typename Execution::sender_concept;
        using completion_signatures =
            typename Execution::template completion_signatures<typename Execution::set_value(),
                                                               typename Execution::set_stopped()>;

        /// attributes, with the property that schedule() is always asynchronous, where that can be
        /// queried.
        class schedule_attributes : public attributes {
        public:
            using attributes::attributes;
            using attributes::query;

            template <class Query>
                requires requires {
                    typename Execution::template get_completion_behavior<typename Execution::set_value>;
                } and
                         (std::same_as<Query, typename Execution::template get_completion_behavior<
                                                  typename Execution::set_value>> or
                          std::same_as<Query, typename Execution::template get_completion_behavior<
                                                  typename Execution::set_stopped>>)
            [[nodiscard]] constexpr auto query(Query) const noexcept {
                return Execution::asynchronous;
            }
        };

        explicit schedule_sender(io_multiplexer& multiplexer) noexcept : multiplexer_(&multiplexer) {}

        template <class Receiver>
        [[nodiscard]] auto connect(Receiver to) const noexcept {
            return detail::schedule_operation<Execution, Receiver>(*multiplexer_, std::move(to));
        }
        [[nodiscard]] auto get_env() const noexcept { return schedule_attributes(*multiplexer_); }

    private:
        io_multiplexer* multiplexer_;
    };

    /// A scheduler for a multiplexer's thread. Two are equal if they belong to the same
    /// multiplexer, which outlives them.
    class scheduler {
    public:
        using scheduler_concept = typename Execution::scheduler_concept;

        explicit scheduler(io_multiplexer& multiplexer) noexcept : multiplexer_(&multiplexer) {}

        /// Completes on the multiplexer's thread, by its next pass.
        [[nodiscard]] schedule_sender schedule() const noexcept { return schedule_sender(*multiplexer_); }

        /// Completes there at a time, or after a duration; with set_stopped if a stop is requested
        /// before.
        [[nodiscard]] auto schedule_at(deadline until) const noexcept {
            return io_sender<sleep_sender, detail::as_time>(async_sleep(*multiplexer_, until));
        }
        template <class Rep, class Period>
        [[nodiscard]] auto schedule_after(std::chrono::duration<Rep, Period> time) const noexcept {
            return schedule_at(deadline(time));
        }
        [[nodiscard]] io_multiplexer::time_point now() const noexcept { return multiplexer_->now(); }

        [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }

        template <class Signal>
        [[nodiscard]] scheduler query(
            typename Execution::template get_completion_scheduler<Signal>) const noexcept {
            return *this;
        }
        [[nodiscard]] friend bool operator==(const scheduler& a, const scheduler& b) noexcept {
            return a.multiplexer_ == b.multiplexer_;
        }

    private:
        io_multiplexer* multiplexer_;
    };

    /// Returns a sender that completes with set_value(the buffers, or the operation's other
    /// result), set_error(sluice::error) or set_stopped().
    template <sender Sender>
    [[nodiscard]] static auto as_sender(Sender from) noexcept {
        return io_sender<Sender, detail::by_channel>(std::move(from));
    }

    /// Returns a sender that completes with set_value(the io_result) or set_stopped().
    template <sender Sender>
    [[nodiscard]] static auto as_result(Sender from) noexcept {
        return io_sender<Sender, detail::as_whole>(std::move(from));
    }

    [[nodiscard]] static scheduler get_scheduler(io_multiplexer& multiplexer) noexcept {
        return scheduler(multiplexer);
    }
};

}  // namespace sluice::io
