#include "sluice/io/stream/accept_stream.hpp"

#include "sluice/io/loop/engine.hpp"

namespace sluice::io::detail {

accepting::accepting(listening_socket_handle& from) noexcept
    : handle_(&detail::handle_access::adopted(from)) {}

accepting::accepting(accepting&& other) noexcept
    : operation_record(std::move(other)), handle_(other.handle_) {
    ENSURE(not other.started_, "moved while started");
}

accepting::~accepting() {
    ENSURE(not started_, "destroyed while started: cancel it and wait for the done signal");
}

void accepting::start() noexcept {
    ENSURE(not started_, "started while started");
    started_ = true;
    cancelled_ = ending_ = request_.stops = false;
    is_ahead_ = detail::engine::begin_accepting(multiplexer(), *handle_, request_);
    begin();
}

void accepting::begin() noexcept {
    ENSURE(started_ and not ending_ and is_idle(), "begins after its last value, or while it waits");
    target = handle_;
    kind = is_ahead_ ? operation_kind::accept_ahead : operation_kind::accept;
    pieces = nullptr;
    piece_count = 0;
    argument = is_ahead_ ? static_cast<void*>(&request_) : &request_.peer;
    request_.knows_peer = not is_ahead_;
    // There is nothing to try: the back end has the connections that it accepts, or will get them.
    if (not detail::engine::start(multiplexer(), *this,
                                  is_ahead_ ? initiation::batched : initiation::automatic))
        return;
    detail::engine::signal_both(multiplexer(), *this, [this] { signal_value(); }, [this] { signal_done(); });
}

void accepting::cancel() noexcept {
    if (not started_ or cancelled_) return;
    // For the case that no accept is waiting: inside a signal, or with the next connection
    // available.
    cancelled_ = request_.stops = true;
    if (not is_ahead_ or at == stage::in_flight) {
        detail::engine::cancel(multiplexer(), *this, ECANCELED);
    } else if (at == stage::waiting) {
        // Withdrawn, it would leave the connections unhandled that have been accepted for it.
        detail::engine::prioritise(multiplexer(), *this);
    }
}

accepted accepting::connection() const noexcept {
    ENSURE(error_code == 0, "an accept that has failed has no connection");
    const native_handle native = describe_socket(static_cast<int>(transferred), handle_->native.stream);
    accepted taken{.socket = socket_handle(native), .peer = {}};
    if (request_.knows_peer) {
        taken.peer = request_.peer;
    } else if (auto asked = peer_address_of(native)) {
        taken.peer = *asked;
    }
    return taken;
}

void accepting::deliver(result<accepted>&& outcome) noexcept {
    ENSURE(started_ and not ending_, "a value after the last");
    ending_ = not outcome.has_value();
    set_value(std::move(outcome));
}

void accepting::signal_value() noexcept {
    if (error_code == 0) {
        deliver(connection());
    } else {
        deliver(failure({error_code, "accept", handle_->native.descriptor}));
    }
}

void accepting::signal_done() noexcept {
    if (cancelled_ and not ending_ and not is_ahead_) deliver(failure({ECANCELED, "accept"}));
    if (not ending_) {
        begin();
        return;
    }
    started_ = false;
    if (is_ahead_) detail::engine::end_accepting(multiplexer(), *handle_);
    set_done();  // this may be gone, or started again
}

}  // namespace sluice::io::detail
