#include "sluice/io/stream/receive_stream.hpp"

#include "sluice/io/loop/engine.hpp"

namespace sluice::io::detail {

receiving::receiving(socket_handle& from, receive_pool& pool) noexcept : slots_(pool.slots_.get()) {
    if (handle_access::registered(from) == nullptr) {
        if (const auto attached = from.set_multiplexer(&slots_->multiplexer()); not attached) {
            refusal_ = attached.error();
            handle_ = &engine::no_handle(multiplexer());
            return;
        }
    }
    handle_ = handle_access::registered(from);
    ENSURE(handle_->multiplexer == &slots_->multiplexer(), "the pool belongs to another multiplexer");
    ENSURE(handle_->native.kind == handle_kind::socket and handle_->native.stream, "not a stream socket");
}

receiving::receiving(receiving&& other) noexcept
    : operation_record(std::move(other)),
      slots_(other.slots_),
      handle_(other.handle_),
      refusal_(other.refusal_) {
    ENSURE(not other.started_, "moved while started");
}

receiving::~receiving() {
    ENSURE(not started_, "destroyed while started: cancel it and wait for the done signal");
}

void receiving::start(extent wanted) noexcept {
    ENSURE(not started_, "started while started");
    started_ = true;
    request_.once = is_single_ = wanted == extent::one_piece;
    cancelled_ = ending_ = request_.stops = false;
    engine::hold(multiplexer(), *handle_);
    go_on();
}

// Begins the next use: after a signal, the next receive; otherwise the first.
void receiving::go_on() noexcept {
    ENSURE(started_ and is_idle() and not is_paused_ and not ending_,
           "one use at a time, and none after the last value");
    if (refusal_) [[unlikely]] {
        // Ends in the next pass, where signal_value() delivers the error.
        begin(operation_kind::sleep);
    } else if (cancelled_) {
        begin_end();
    } else {
        begin(is_provided() ? operation_kind::receive : operation_kind::ready_to_read);
    }
}

// Batched, so that no signal comes from inside start() or the return of a buffer, and because
// usually no bytes are available yet.
void receiving::begin(operation_kind what) noexcept {
    target = handle_;
    kind = what;
    pieces = nullptr;
    piece_count = 0;
    argument = nullptr;
    if (what == operation_kind::receive) {
        request_.group = *slots_->group();
        argument = &request_;
    }
    limit = what == operation_kind::sleep ? deadline::zero() : deadline();
    ENSURE(not engine::start(multiplexer(), *this, initiation::batched));
}

void receiving::begin_read(initiation how) noexcept {
    ENSURE(index_ != receive_slots::none, "reads into no buffer");
    const auto space = slots_->bytes(index_);
    piece_ = {space.data(), space.size()};
    target = handle_;
    kind = operation_kind::read;
    pieces = &piece_;
    piece_count = 1;
    ENSURE(not engine::start(multiplexer(), *this, how), "only from the loop, or batched");
}

// An operation that ends with ECANCELED, so that the signals come from the loop as always.
void receiving::begin_end() noexcept {
    request_.stops = true;
    if (is_provided()) {
        begin(operation_kind::receive);  // first delivers the bytes already received
    } else {
        begin(operation_kind::ready_to_read);
        engine::cancel(multiplexer(), *this, ECANCELED);
    }
}

void receiving::cancel() noexcept {
    if (not started_ or cancelled_) return;
    cancelled_ = true;
    if (is_paused_) {
        is_paused_ = false;
        slots_->stop_waiting(*this);
        begin_end();
    } else if (kind != operation_kind::receive) {
        engine::cancel(multiplexer(), *this, ECANCELED);
    } else {
        request_.stops = true;
        // An operation that waits for its submission checks `stops` there; withdrawn, it would
        // leave bytes unread.
        if (at == stage::in_flight) engine::cancel(multiplexer(), *this, ECANCELED);
    }
}

void receiving::abandon() noexcept {
    if (std::exchange(is_paused_, false)) slots_->stop_waiting(*this);
    while (not is_idle()) {
        request_.stops = true;
        engine::abandon(multiplexer(), *this);
        drop_bytes();
        // Bytes that the back end has received ahead come first, then ECANCELED.
        if (kind == operation_kind::receive and error_code == 0) begin(operation_kind::receive);
    }
    leave();
}

// Returns the buffer of a completed use.
void receiving::drop_bytes() noexcept {
    if (kind == operation_kind::receive and transferred != 0) {
        slots_->count_use();
        slots_->release(request_.index);
    } else if (index_ != receive_slots::none) {
        slots_->release(std::exchange(index_, receive_slots::none));
    }
}

void receiving::leave() noexcept {
    ENSURE(is_idle() and not is_paused_, "left while a use is pending");
    started_ = false;
    engine::release(multiplexer(), *handle_);
    slots_->wake_another();
}

void receiving::pause() noexcept {
    ENSURE(is_idle() and not is_paused_, "paused while a use is pending");
    is_paused_ = true;
    slots_->wait(*this);
}

// Called by the pool, which has removed this from its list.
void receiving::resume(std::uint32_t index) noexcept {
    ENSURE(is_paused_ and is_idle());
    is_paused_ = false;
    if (index == receive_slots::none) {
        begin(operation_kind::receive);
    } else {
        index_ = index;
        begin_read(initiation::batched);
    }
}

void receiving::deliver(result<received_buffer>&& outcome) noexcept {
    ENSURE(started_ and not ending_, "a value after the last");
    ending_ = is_single_ or not outcome.has_value() or outcome->empty();
    set_value(std::move(outcome));
}

void receiving::take_bytes() noexcept {
    std::uint32_t index = std::exchange(index_, receive_slots::none);
    if (kind == operation_kind::receive and transferred != 0) {
        slots_->count_use();
        index = request_.index;
    }
    if (transferred != 0) {
        ENSURE(transferred <= slots_->bytes(index).size(), "more was received than a buffer holds");
        deliver(received_buffer(*slots_, index, transferred));
        return;
    }
    if (index != receive_slots::none) slots_->release(index);
    deliver(received_buffer());
}

void receiving::signal_value() noexcept {
    const bool is_out_of_buffers = kind == operation_kind::receive and error_code == ENOBUFS;
    if (is_out_of_buffers or (kind == operation_kind::ready_to_read and error_code == 0)) return;
    if (refusal_) [[unlikely]] {
        deliver(failure(*refusal_));
        return;
    }
    if (error_code == 0) {
        take_bytes();
        return;
    }
    if (index_ != receive_slots::none) slots_->release(std::exchange(index_, receive_slots::none));
    deliver(failure({error_code, "receive", handle_->native.descriptor}));
}

void receiving::signal_done() noexcept {
    if (ending_) {
        leave();
        set_done();  // this may be gone, or started again
        return;
    }
    const bool is_readable = kind == operation_kind::ready_to_read;
    const bool is_out_of_buffers = kind == operation_kind::receive and error_code == ENOBUFS;
    if (cancelled_ or not(is_readable or is_out_of_buffers)) {
        go_on();
    } else if (is_out_of_buffers) {
        // A buffer may have been returned since.
        slots_->in_use() == slots_->count() ? pause() : go_on();
    } else if (index_ = slots_->take(); index_ == receive_slots::none) {
        pause();
    } else {
        begin_read(initiation::speculative);
    }
}

}  // namespace sluice::io::detail
