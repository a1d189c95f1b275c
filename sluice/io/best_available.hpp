#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "sluice/base/result.hpp"

namespace sluice::io {

class io_multiplexer;

/// Creates the best multiplexer that this system allows: io_uring, else epoll. Whether io_uring
/// works is tested once per process. The environment variable SLUICE_MULTIPLEXER=io_uring or =epoll
/// overrides the choice.
///
/// Order of degradation, each step only if the previous one fails: a ring of the default size;
/// rings of a quarter, a sixteenth and so on, for lack of memory (ENOMEM); an epoll multiplexer,
/// for this loop only, unless the variable requires io_uring. A ring that runs out of memory later
/// uses system calls for requests that the kernel refuses, and returns to the ring when the kernel
/// accepts requests again.
///
/// `threads` is the number of threads that may use it. 1: it belongs to one, and has no lock. More:
/// see io_multiplexer::is_for_threads(). It starts none of them. `file_threads` is the number of
/// worker threads that an epoll multiplexer may start for files that would block. 0: its loop waits
/// for files that are not in memory; with several threads it starts at least one. Errors: EINVAL if
/// `threads` is 0 or, naming the variable, if it has another value; ENOMEM, EMFILE and similar
/// errors if the last step fails too. Allocates: yes. Thread safety: any thread.
[[nodiscard]] result<std::unique_ptr<io_multiplexer>> best_available(std::size_t threads = 1,
                                                                     std::size_t file_threads = 1) noexcept;

/// Returns the choice of best_available and its reason, as text: "io_uring", or "epoll:
/// io_uring_setup, denied by seccomp or kernel.io_uring_disabled: Operation not permitted". After a
/// loop had to use epoll although io_uring works: "epoll for some loops: " and the cause of the
/// first. Thread safety: any thread.
[[nodiscard]] std::string_view best_available_reason() noexcept;

namespace this_thread {

/// Returns the calling thread's own multiplexer, which best_available creates on first use and
/// which is destroyed with the thread. Errors: those of best_available. Allocates: on first use.
[[nodiscard]] result<io_multiplexer*> multiplexer() noexcept;

/// Makes another multiplexer the calling thread's own; null: the next use creates one again. The
/// caller keeps it alive.
void set_multiplexer(io_multiplexer* multiplexer) noexcept;

}  // namespace this_thread

}  // namespace sluice::io
