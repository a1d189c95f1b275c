#pragma once

#include <optional>
#include <span>
#include <utility>

#include "sluice/io/handle/multiplexable_handle.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io::detail {

/// The library's own way into a multiplexer and a handle: what handles, senders and awaitables use and users
/// do not. io_multiplexer says what each function does; all are inline and cost nothing.
struct engine {
    using runs_here = io_multiplexer::runs_here;

    // --- operations

    [[nodiscard, gnu::always_inline]] static bool start(io_multiplexer& on, operation_record& op,
                                                        initiation how = initiation::automatic) noexcept {
        return on.start(op, how);
    }
    template <class Value, class Done>
    [[gnu::always_inline]] static void signal_both(io_multiplexer& on, operation_record& op, Value&& value,
                                                   Done&& done) noexcept {
        on.signal_both(op, std::forward<Value>(value), std::forward<Done>(done));
    }
    template <class Value, class Done>
    [[gnu::always_inline]] static void give_both(io_multiplexer& on, operation_record& op, Value&& value,
                                                 Done&& done) noexcept {
        on.give_both(op, std::forward<Value>(value), std::forward<Done>(done));
    }
    [[nodiscard, gnu::always_inline]] static bool start_or_finish(io_multiplexer& on,
                                                                  operation_record& op) noexcept {
        return on.start_or_finish(op);
    }
    [[nodiscard]] static bool refuse(io_multiplexer& on, operation_record& op) noexcept {
        return on.refuse(op);
    }
    static void publish(io_multiplexer& on, operation_record& op, initiation how) noexcept {
        on.publish(op, how);
    }
    [[nodiscard]] static bool poll(io_multiplexer& on, operation_record& op) noexcept { return on.poll(op); }
    static void cancel(io_multiplexer& on, operation_record& op, int code) noexcept { on.cancel(op, code); }
    static bool abandon(io_multiplexer& on, operation_record& op) noexcept { return on.abandon(op); }
    static void complete_elsewhere(io_multiplexer& on, operation_record& op) noexcept {
        on.complete_elsewhere(op);
    }
    static void bring_forward(io_multiplexer& on, operation_record& op) noexcept { on.bring_forward(op); }

    // --- handles

    [[nodiscard]] static result<registration*> attach(io_multiplexer& to,
                                                      const native_handle& native) noexcept {
        return to.attach(native);
    }
    [[nodiscard]] static result<void> detach(io_multiplexer& from, registration& attached) noexcept {
        return from.detach(attached);
    }
    static void hold(io_multiplexer& on, registration& attached) noexcept { on.hold(attached); }
    static void release(io_multiplexer& on, registration& attached) noexcept { on.release(attached); }
    [[nodiscard]] static registration& no_handle(io_multiplexer& on) noexcept { return on.no_handle(); }
    [[nodiscard]] static registration& words(io_multiplexer& on) noexcept { return on.words(); }
    [[nodiscard]] static bool waits_for_words(const io_multiplexer& of) noexcept {
        return of.waits_for_words();
    }

    /// The multiplexer's record of a handle; null without a multiplexer.
    [[nodiscard]] static registration* registered(const multiplexable_handle& of) noexcept {
        return of.registered();
    }
    /// The same, after adopting the calling thread's multiplexer if there is none.
    [[nodiscard, gnu::always_inline]] static registration& adopted(multiplexable_handle& of) noexcept {
        return of.adopted();
    }
    static void note_nonblocking(multiplexable_handle& of) noexcept { of.note_nonblocking(); }

    // --- buffers and connections that the back end provides

    static void forget_registered_buffer(io_multiplexer& of, unsigned index) noexcept {
        of.forget_registered_buffer(index);
    }
    [[nodiscard]] static std::optional<unsigned> provide_receive_buffers(io_multiplexer& to,
                                                                         std::span<std::byte> memory,
                                                                         std::size_t bytes_each) noexcept {
        return to.provide_receive_buffers(memory, bytes_each);
    }
    static void return_receive_buffer(io_multiplexer& to, unsigned group, std::uint32_t index) noexcept {
        to.return_receive_buffer(group, index);
    }
    static void forget_receive_buffers(io_multiplexer& of, unsigned group) noexcept {
        of.forget_receive_buffers(group);
    }
    [[nodiscard]] static bool begin_accepting(io_multiplexer& on, registration& listener,
                                              accept_request& into) noexcept {
        return on.begin_accepting(listener, into);
    }
    static void end_accepting(io_multiplexer& on, registration& listener) noexcept {
        on.end_accepting(listener);
    }

    // --- threads

    static void post_last(io_multiplexer& to, posted_item& item) noexcept { to.post_last(item); }
    [[nodiscard]] static bool waits_for_threads(const io_multiplexer& of) noexcept {
        return of.waits_for_threads();
    }
    static void run_until(io_multiplexer& of, const bool& done) noexcept { of.run_until(done); }
    static void finish_run(io_multiplexer& of, bool& done) noexcept { of.finish_run(done); }
};

}  // namespace sluice::io::detail
