#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "sluice/base/result.hpp"

namespace sluice::io {

class io_multiplexer;

/// Makes the best multiplexer this system allows: io_uring, else epoll. Whether io_uring works is tried once
/// for each process. The environment variable SLUICE_MULTIPLEXER=io_uring or =epoll overrides the choice.
///
/// Order of degradation, each step only if the one before it fails: a ring of the default size; rings of a
/// quarter, a sixteenth and so on, for lack of memory (ENOMEM); an epoll multiplexer, for this loop only,
/// unless the variable requires io_uring. A ring that runs out of memory later carries out by system calls
/// what the kernel does not take, and returns to the ring when the kernel takes requests again.
///
/// `threads` is how many threads may use it. 1: it belongs to one, and has no lock. More: see
/// io_multiplexer::is_for_threads(). It starts none of them. `file_threads` is the number of worker threads
/// an epoll multiplexer may start for files that would block. 0: its loop waits for files that are not in
/// memory; with several threads it starts one at least. Errors: EINVAL if `threads` is 0, or, naming it, if
/// the variable has another value; ENOMEM, EMFILE and the like if the last step fails too. Allocates: yes.
/// Thread safety: any thread.
[[nodiscard]] result<std::unique_ptr<io_multiplexer>> best_available(std::size_t threads = 1,
                                                                     std::size_t file_threads = 1) noexcept;

/// Returns what best_available makes and why, as text: "io_uring", or "epoll: io_uring_setup, denied by
/// seccomp or kernel.io_uring_disabled: Operation not permitted". After a loop had to use epoll although
/// io_uring works: "epoll for some loops: " and the cause of the first. Thread safety: any thread.
[[nodiscard]] std::string_view best_available_reason() noexcept;

namespace this_thread {

/// The calling thread's own multiplexer, made by best_available on first use and destroyed with the thread.
/// Errors: those of best_available. Allocates: on first use.
[[nodiscard]] result<io_multiplexer*> multiplexer() noexcept;

/// Makes another multiplexer the calling thread's own; null: the next use makes one again. The caller keeps
/// it alive.
void set_multiplexer(io_multiplexer* multiplexer) noexcept;

}  // namespace this_thread

}  // namespace sluice::io
