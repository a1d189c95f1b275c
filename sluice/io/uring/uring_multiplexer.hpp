#pragma once

#include <cstddef>
#include <memory>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/uring/uring_options.hpp"

namespace sluice::io {

/// Tests whether io_uring works here, by using it. Errors: as make_uring_multiplexer. Allocates:
/// for the trial.
[[nodiscard]] result<void> try_uring() noexcept;

/// Creates a multiplexer over io_uring. It may be created on one thread and used on another. The
/// kernel then insists on the thread that first completes an operation on it: a handle detached on
/// another thread, after that one has ended, may stay open until the multiplexer is destroyed.
///
/// Waiting operations are submitted to the kernel in batches: one system call for each pass of the
/// loop. Allocates: yes, up front; attaching handles allocates in steps of
/// limits::registrations_per_chunk. Errors, with the reason in words: EPERM, denied by seccomp or
/// kernel.io_uring_disabled; ENOSYS, unknown to this kernel or sandbox; EOPNOTSUPP, a kernel before
/// 5.19; ENOMEM, EMFILE, ENFILE.
[[nodiscard]] result<std::unique_ptr<io_multiplexer>> make_uring_multiplexer(
    uring_options options = {}) noexcept;

}  // namespace sluice::io
