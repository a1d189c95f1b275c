#pragma once

#include <cstddef>
#include <limits>

#include "sluice/io/loop/run_by.hpp"

namespace sluice::io {

struct uring_options {
    /// Entries of the submission queue. A full queue is submitted early, so this bounds nothing.
    unsigned submission_entries = 256;

    /// Entries of the completion queue; the kernel keeps further completions, at a price.
    unsigned completion_entries = 4096;

    /// Handles, of those attached first, that the kernel may keep in a table of its own.
    unsigned fixed_files = 4096;

    /// Writes to files by pwrite on the loop's thread. Several times faster than the ring on file systems
    /// whose writes it hands to a worker (ext4, tmpfs), but waits there when too much memory is dirty.
    bool inline_file_writes = false;

    /// A write to a socket at least this long, of at most limits::gathered_pieces_max buffers, is sent from
    /// those without a copy, if the kernel supports that: value is signalled when it is queued, done when the
    /// buffers may be changed. The multiplexer stops doing so on a connection (loopback) whose data is copied
    /// after all, and altogether on a kernel that does not report copies (before 6.2).
    std::size_t zero_copy_send_bytes_min = std::numeric_limits<std::size_t>::max();

    /// By how many threads it is used. By several: without copies avoided, and without buffers and
    /// connections that the kernel hands out by itself.
    run_by threads = run_by::one;
};

}  // namespace sluice::io
