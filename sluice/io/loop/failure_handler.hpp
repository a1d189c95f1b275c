#pragma once

namespace sluice::io {

/// A failure that no function can return, because there is no awaiter or the
/// caller is a destructor.
enum class unreturned_failure : unsigned char {
    exception_left_task,      ///< a task without an awaiter: a child of a task_group
    waiting_frame_destroyed,  ///< a coroutine's frame, while the kernel may still
                              ///< write into its buffers
    pending_state_destroyed,  ///< a connected state, likewise
    loop_cannot_run,          ///< the kernel refuses a system call of an event
                              ///< loop, as in sync_wait
};

/// Handles such a failure; `what` has details. May be called on any thread, on several at once. If
/// it returns, the library continues: the exception is dropped with its task; the operation of the
/// frame or state is cancelled, and its thread waits until the kernel has released the buffers. A
/// loop that cannot run tries again at once, and calls the handler each time, so a handler that
/// returns should pause.
using failure_handler = void (*)(unreturned_failure which, const char* what) noexcept;

/// Replaces the handler of the process and returns the previous one; null restores the default,
/// which prints the failure to standard error and calls std::abort. Thread safety: any thread.
/// Allocates: nothing.
failure_handler set_failure_handler(failure_handler handler) noexcept;

/// Calls the handler. For the library and its extensions.
void report_unreturned(unreturned_failure which, const char* what) noexcept;

}  // namespace sluice::io
