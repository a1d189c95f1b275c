#include "sluice/io/sender/atomic_sender.hpp"

#include "sluice/io/loop/engine.hpp"

namespace sluice::io {

void atomic_operation::start(initiation how) noexcept {
    const bool won = try_start(how);
    ENSURE(won, "started while pending: use try_start() where two threads may start one operation");
}

bool atomic_operation::try_start(initiation how) noexcept {
    if (not claim()) return false;
    launch(how);
    return true;
}

void atomic_operation::launch(initiation how) noexcept {
    how_ = how;
    io_multiplexer& multiplexer = home();
    if (multiplexer.is_for_threads()) {
        begin_here(multiplexer);
    } else if (multiplexer.is_owner()) {
        begin();
    } else {
        multiplexer.post(start_item_);  // the state may be gone when this returns
    }
}

void atomic_operation::begin() noexcept {
    configure_io();
    io_multiplexer& multiplexer = home();
    // An operation that was cancelled before is signalled like all others, so that their receivers
    // do not nest.
    const bool is_known = state_.begin() ? detail::engine::start(multiplexer, *this, how_)
                                         : detail::engine::refuse(multiplexer, *this);
    if (is_known)
        detail::engine::signal_both(
            multiplexer, *this, [this] { signal_value(); }, [this] { signal_done(); });
}

// A cancellation from now on finds the operation in the multiplexer.
void atomic_operation::begin_here(io_multiplexer& multiplexer) noexcept {
    ENSURE(multiplexer.is_for_threads(), "only one for several threads is entered by any of them");
    configure_io();
    if (detail::engine::start_or_finish(multiplexer, *this)) [[unlikely]] {
        // It cannot start: its handle has no multiplexer. start() signals the error.
        (void)state_.begin();
        (void)detail::engine::start(multiplexer, *this, how_);
        return;
    }
    if (not state_.begin()) detail::engine::cancel(multiplexer, *this, ECANCELED);
    detail::engine::publish(multiplexer, *this, how_);
}

// Returns whether calls on it may be made on this thread.
bool atomic_operation::acts_here(const io_multiplexer& multiplexer) noexcept {
    return multiplexer.is_for_threads() or multiplexer.is_owner();
}

bool atomic_operation::poll() noexcept {
    if (completed()) return true;
    io_multiplexer& multiplexer = home();
    if (not acts_here(multiplexer) or not started() or state_.is_claimed()) return false;
    return detail::engine::poll(multiplexer, *this);
}

void atomic_operation::cancel() noexcept {
    io_multiplexer& multiplexer = home();
    switch (state_.cancel(acts_here(multiplexer))) {
        case atomic_state<>::cancel_step::nothing:
            break;
        case atomic_state<>::cancel_step::post_item:
            multiplexer.post(cancel_item_);  // the state may be gone when this returns
            break;
        case atomic_state<>::cancel_step::cancel_io:
            detail::engine::cancel(multiplexer, *this, ECANCELED);
            break;
    }
}

void atomic_operation::on_cancel_item() noexcept {
    switch (state_.cancel_arrived()) {
        case atomic_state<>::arrival_step::nothing:
            break;
        case atomic_state<>::arrival_step::cancel_io:
            detail::engine::cancel(home(), *this, ECANCELED);
            break;
        case atomic_state<>::arrival_step::signal_done:
            waiting_.reset();
            set_receiver_done();
            break;
    }
}

void atomic_operation::signal_value() noexcept {
    state_.value();
    set_receiver_value();
}

void atomic_operation::signal_done() noexcept {
    if (state_.end()) {
        set_receiver_done();
    } else {
        // No operation is pending for the multiplexer any more, but a thread is about to push the
        // item, or has done so.
        ENSURE(not waiting_, "one cancellation at a time is on its way");
        waiting_.emplace(home());
    }
}

}  // namespace sluice::io
