#pragma once

#include <cstddef>
#include <limits>

#include "sluice/io/loop/run_by.hpp"

namespace sluice::io {

struct uring_options {
    /// Entries of the submission queue. A full queue is submitted early, so this limits nothing.
    unsigned submission_entries = 256;

    /// Entries of the completion queue; the kernel keeps further completions, at a cost.
    unsigned completion_entries = 4096;

    /// Handles, in the order of attachment, that the kernel may keep in its own table.
    unsigned fixed_files = 4096;

    /// Writes to files by pwrite on the loop's thread. This is several times faster than the ring
    /// on file systems whose writes the ring passes to a worker (ext4, tmpfs), but waits there when
    /// too much memory is dirty.
    bool inline_file_writes = false;

    /// The minimum length of a zero-copy send. A write to a socket of at least this length, in at
    /// most limits::gathered_pieces_max buffers, is sent directly from them, if the kernel supports
    /// that: value is signalled when it is queued, done when the buffers may be changed. The
    /// multiplexer stops doing so on a connection (loopback) whose data is copied after all, and
    /// altogether on a kernel that does not report copies (before 6.2).
    std::size_t zero_copy_send_bytes_min = std::numeric_limits<std::size_t>::max();

    /// The number of threads that use it. For several, there are no zero-copy sends, and the kernel
    /// provides no buffers and connections by itself.
    run_by threads = run_by::one;
};

}  // namespace sluice::io
