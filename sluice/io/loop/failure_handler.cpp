#include "sluice/io/loop/failure_handler.hpp"

#include <atomic>

#include "sluice/base/ensure.hpp"

namespace sluice::io {
namespace {

const char* text_of(unreturned_failure which) noexcept {
    switch (which) {
        case unreturned_failure::exception_left_task:
            return "an exception left a task without an awaiter";
        case unreturned_failure::waiting_frame_destroyed:
            return "a coroutine was destroyed while it waits for i/o: cancel its scope and wait instead";
        case unreturned_failure::pending_state_destroyed:
            return "a connected state was destroyed while its operation is pending: cancel it and wait for "
                   "done";
        case unreturned_failure::loop_cannot_run:
            return "the kernel does not let an event loop run";
    }
    ENSURE(false, "no such failure");
    return "";
}

void print_and_abort(unreturned_failure which, const char* what) noexcept {
    ensure_failed(text_of(which), what, __FILE__, __LINE__);
}

std::atomic<failure_handler> current{print_and_abort};

}  // namespace

failure_handler set_failure_handler(failure_handler handler) noexcept {
    // acquire and release: what a thread did before it set a handler is seen by the thread that calls it.
    return current.exchange(handler != nullptr ? handler : print_and_abort, std::memory_order_acq_rel);
}

void report_unreturned(unreturned_failure which, const char* what) noexcept {
    current.load(std::memory_order_acquire)(which, what);
}

}  // namespace sluice::io
