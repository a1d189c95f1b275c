#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/request.hpp"

// Moves bytes from one descriptor to another without passing through our memory: the common engine
// of the blocking calls and the senders of splice.hpp. Internal to io.

namespace sluice::io {

/// The pipe of a splice_pipe, as transfers see it, and the number of bytes in it. The splice_pipe
/// owns the descriptors, and this moves with it: one pipe has one count. An object that was moved
/// from belongs to no pipe and has a capacity of 0. Invariant: `pending` is at most `capacity`.
struct transit_pipe {
    native_handle reader;
    native_handle writer;
    std::size_t capacity = 0;
    std::size_t pending = 0;

    transit_pipe(const native_handle& reads, const native_handle& writes, std::size_t bytes_max) noexcept
        : reader(reads), writer(writes), capacity(bytes_max) {}
    transit_pipe(const transit_pipe&) = delete;
    transit_pipe& operator=(const transit_pipe&) = delete;
    transit_pipe(transit_pipe&& other) noexcept
        : reader(std::exchange(other.reader, {})),
          writer(std::exchange(other.writer, {})),
          capacity(std::exchange(other.capacity, 0)),
          pending(std::exchange(other.pending, 0)) {}
    transit_pipe& operator=(transit_pipe&& other) noexcept {
        reader = std::exchange(other.reader, {});
        writer = std::exchange(other.writer, {});
        capacity = std::exchange(other.capacity, 0);
        pending = std::exchange(other.pending, 0);
        return *this;
    }
    ~transit_pipe() = default;

    void add(std::size_t bytes) noexcept {
        ENSURE(bytes <= capacity - pending, "a pipe holds no more than its capacity");
        pending += bytes;
    }
    void remove(std::size_t bytes) noexcept {
        ENSURE(bytes <= pending, "more bytes left a pipe than had entered it");
        pending -= bytes;
    }
    /// Discards the pending bytes.
    void discard() noexcept;
};

/// A transfer between two descriptors, and its progress. A value until it is begun; then the
/// objects it refers to must stay. Invariant: `moved` counts header, payload and zeros, in the
/// order they reach `to`.
struct splice_transfer {
    // The request.
    native_handle from;
    native_handle to;
    transit_pipe* through = nullptr;  // where neither end is a pipe: by reference through
                                      // this, else as it goes
    const_bytes_type header{};        // sent before the bytes from `from`
    bytes_type scratch{};             // to copy to a file through; empty: the stack's
    extent_type from_offset = 0;      // of files
    extent_type to_offset = 0;
    std::uint64_t length = 0;
    bool duplicates = false;     // tee: the bytes that are read stay
    bool ends_when_dry = false;  // the available bytes suffice, as for a read
    bool fills = false;          // zeros for the missing end of the file
    bool waits = false;          // the calls themselves may wait

    // Progress.
    std::uint64_t moved = 0;
    std::uint64_t zeros = 0;
    bool is_prepared = false;
    // The kernel cannot splice these two: through our memory, one segment at a time.
    bool copies = false;

    void restart() noexcept;
    [[nodiscard]] std::uint64_t payload() const noexcept {
        return moved > header.size() ? moved - header.size() : 0;
    }
};

struct splice_step {
    enum class what : std::uint8_t {
        finished,          ///< with `code`, 0 for success
        waits_for_source,  ///< no more bytes are available
        waits_for_target,  ///< it accepts no more bytes
        has_more,          ///< it could continue, and gives other operations a turn
    };
    what outcome = what::finished;
    int code = 0;
};

/// Continues a transfer without waiting for a pipe or socket, by at most
/// limits::splice_bytes_per_turn_max bytes. A transfer that `waits` continues until its end, or
/// until a pipe or a socket that its owner has made non-blocking is not ready. File reads and
/// writes may take any time. No SIGPIPE; see sigpipe_guard. Allocates: nothing.
[[nodiscard]] splice_step advance(splice_transfer& transfer) noexcept;

}  // namespace sluice::io
