#pragma once

#include <optional>
#include <span>
#include <utility>

#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io {

// --- the inline functions of io_multiplexer, for senders and for back ends

inline void io_multiplexer::reset(detail::operation_record& op) noexcept {
    ENSURE(op.is_idle(), "started while pending");
    op.transferred = 0;
    op.error_code = op.cancel_code = 0;
    op.backend_word = 0;
    op.has_completed = false;
    ++pending_;
    ++op.target->pending;
}

inline void io_multiplexer::retire(detail::operation_record& op) noexcept {
    --pending_;
    --op.target->pending;
    op.at = detail::operation_record::stage::idle;
}

inline bool io_multiplexer::start(detail::operation_record& op, initiation how) noexcept {
    if (not is_inside()) [[unlikely]]
        return start_outside(op, how);
    const bool is_known = how == initiation::batched ? begin_batched(op) : begin(op, how);
    if (not is_known) return false;
    if (not signalling_) [[likely]]
        return true;
    ready_.push_back(op);
    return false;
}

inline bool io_multiplexer::refuse(detail::operation_record& op) noexcept {
    if (not is_inside()) [[unlikely]]
        return refuse_outside(op);
    reset(op);
    op.error_code = ECANCELED;
    op.at = detail::operation_record::stage::ready;
    if (not signalling_) return true;
    ready_.push_back(op);
    return false;
}

inline bool io_multiplexer::start_or_finish(detail::operation_record& op) noexcept {
    if (not is_inside()) [[unlikely]]
        return start_or_finish_outside(op);
    if (not begin(op, initiation::automatic)) return false;
    if (inline_left_ <= 0) [[unlikely]] {
        // It takes its turn after other operations, because a handle that is always ready must not
        // starve the rest.
        ready_.push_back(op);
        return false;
    }
    --inline_left_;
    op.has_completed = true;
    retire(op);
    return true;
}

inline void io_multiplexer::record_completions(unsigned count) noexcept {
    if (direct_left_ > 0 and not signalling_)
        is_batching_ = batches_starts_ and count >= static_cast<unsigned>(limits::batching_completions_min);
}

inline void io_multiplexer::hold(registration& attached) noexcept {
    if (sharing_ == nullptr) ensure_owner();
    const entry in(*this);
    ++pending_;
    ++attached.pending;
}

inline void io_multiplexer::release(registration& attached) noexcept {
    const entry in(*this);
    ENSURE(pending_ != 0 and attached.pending != 0, "released more often than held");
    --pending_;
    --attached.pending;
}

inline void io_multiplexer::finish(detail::operation_record& op) noexcept {
    if (not op.notification_pending) --queued_;
    if (op.timer_link.is_linked()) disarm_timer(op);
    if (op.cancel_code != 0 and op.error_code == ECANCELED) op.error_code = op.cancel_code;
    op.at = detail::operation_record::stage::ready;
    ready_.push_back(op);
    ++finished_;
}

inline void io_multiplexer::finish_directly(detail::operation_record& op) noexcept {
    const bool waits_its_turn = not ready_.empty() or signalling_ or not op.limit.is_none();
    if (waits_its_turn or direct_left_ <= 0 or inline_left_ <= 0) [[unlikely]] {
        finish(op);
        return;
    }
    --direct_left_;
    --queued_;
    signalling_ = true;
    op.signal_both(*this);
    signalling_ = false;
}

template <class Value, class Done>
void io_multiplexer::signal_both(detail::operation_record& op, Value&& value, Done&& done) noexcept {
    signalling_ = true;
    give_both(op, value, done);
    signalling_ = false;
}

template <class Value, class Done>
void io_multiplexer::give_both(detail::operation_record& op, Value&& value, Done&& done) noexcept {
    op.at = detail::operation_record::stage::valued;
    op.has_completed = true;
    value();
    retire(op);
    done();  // `op` may be gone, or started again
}

inline bool io_multiplexer::prepare_to_sleep() noexcept {
    ENSURE(not sleeping_.load(std::memory_order_relaxed), "one thread at a time sleeps in a multiplexer");
    sleeping_.store(true, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in post()
    if (posted_.empty() and completed_elsewhere_.empty() and not backend_has_news()) {
        end_turn();
        if (sharing_ != nullptr) [[unlikely]]
            fall_asleep();
        return true;
    }
    sleeping_.store(false, std::memory_order_relaxed);
    return false;
}

inline void io_multiplexer::woke_up() noexcept {
    ENSURE(sleeping_.load(std::memory_order_relaxed), "woke up without having slept");
    if (sharing_ != nullptr) [[unlikely]]
        awake();
    begin_turn();
    // A late wake-up only ends the next sleep early.
    sleeping_.store(false, std::memory_order_relaxed);
}

template <class Serve>
void io_multiplexer::serve_dirty(Serve&& serve) noexcept {
    // A half that is marked again during this pass has more to do than one pass allows. It waits
    // for the next.
    dirty_list now = std::move(dirty_);
    while (registration::half* half = now.pop_front()) {
        if (not half->queue.empty()) serve(*half);
    }
}

namespace detail {

/// The library's own access to a multiplexer, for handles, senders and awaitables and not for
/// users. See io_multiplexer for each function; all are inline and cost nothing.
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
    static void prioritise(io_multiplexer& on, operation_record& op) noexcept { on.prioritise(op); }

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

}  // namespace detail
}  // namespace sluice::io
