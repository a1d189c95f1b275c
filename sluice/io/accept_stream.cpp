#include "sluice/io/accept_stream.hpp"

namespace sluice::io::detail {

accepting::accepting(listening_socket_handle& from) noexcept
    : operation_(async_accept(from), next_connection{this}) {}

accepting::accepting(accepting&& other) noexcept : operation_(std::move(other.operation_)) {
    ENSURE(not other.started_, "moved while started");
    operation_.get_receiver().stream = this;
}

accepting::~accepting() {
    ENSURE(not started_, "destroyed while started: cancel it and wait for the done signal");
}

void accepting::start() noexcept {
    ENSURE(not started_, "started while started");
    started_ = true;
    cancelled_ = failed_ = false;
    operation_.start();
}

void accepting::cancel() noexcept {
    if (not started_) return;
    // For when no accept is waiting: inside a signal, or with the next connection at hand.
    cancelled_ = true;
    operation_.cancel();
}

void accepting::take(result<accepted>&& outcome) noexcept {
    failed_ = not outcome.has_value();
    signal_value(std::move(outcome));
}

void accepting::go_on() noexcept {
    if (not failed_ and not cancelled_) {
        operation_.start();
        return;
    }
    if (not failed_) signal_value(failure({ECANCELED, "accept"}));
    started_ = false;
    signal_done();  // this may be gone, or started again
}

}  // namespace sluice::io::detail
