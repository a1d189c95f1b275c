#pragma once

#include <cstddef>
#include <memory>

#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/io/loop/run_by.hpp"

namespace sluice::io {

/// Creates a multiplexer over epoll(7), for systems that refuse io_uring. Files that are not in
/// memory go to `file_threads` worker threads; without any they are read and written, blocking,
/// inside complete_io. A multiplexer for several threads has at least one. Errors: EMFILE, ENFILE,
/// ENOMEM; EAGAIN if a thread cannot be started. Allocates: yes.
[[nodiscard]] result<std::unique_ptr<io_multiplexer>> make_epoll_multiplexer(
    std::size_t file_threads = 1, run_by threads = run_by::one) noexcept;

}  // namespace sluice::io
