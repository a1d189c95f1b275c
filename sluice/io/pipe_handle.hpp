#pragma once

#include <string_view>

#include "sluice/io/io_handle.hpp"

namespace sluice::io {

/// One end of a pipe: anonymous, or a named FIFO.
///
/// Ends of pipes made or opened here are non-blocking underneath, so that trying never waits; the blocking
/// calls wait by polling. A read returns no bytes once every writer has closed; a write then fails with
/// EPIPE.
class pipe_handle : public io_handle {
public:
    constexpr pipe_handle() noexcept = default;
    explicit constexpr pipe_handle(native_handle native) noexcept : io_handle(native) {}

    struct pair;

    /// A new anonymous pipe. `capacity_bytes` 0 leaves the system's default (64 KiB); the kernel rounds up to
    /// a power of two of pages and refuses more than /proc/sys/fs/pipe-max-size to ordinary users. Errors:
    /// EMFILE, ENFILE; EPERM for too large a capacity. Allocates: nothing.
    [[nodiscard]] static result<pair> anonymous(std::size_t capacity_bytes = 0) noexcept;
};

struct pipe_handle::pair {
    pipe_handle reader;
    pipe_handle writer;
};

}  // namespace sluice::io
