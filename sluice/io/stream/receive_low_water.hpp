#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

/// Lets a reader of a TCP socket sleep until most of a long message has arrived, instead of waking
/// for each segment. On the same host, a wake-up costs the sender more than the segment.
///
/// While `expect()`ed bytes are missing, a read that has to wait ends when that many have arrived,
/// or 1 MiB, or the stream has ended, or the kernel's receive buffer is full. A read that is tried
/// at once takes the available bytes; a blocking one without a deadline may wait for all of its
/// buffer. async_ready waits like a read. A blocking read of a Unix stream honours the mark;
/// otherwise sockets of other kinds ignore it. Over a slow line a wake-up costs almost nothing, and
/// a full receive buffer stops the sender for a round trip. So after a message that took longer
/// than `slow`, the next `rests_max` wake the reader for each segment. Thread safety: the thread
/// that reads. Source: socket(7), SO_RCVLOWAT.
class receive_low_water {
public:
    /// `socket` is not moved while this exists.
    explicit receive_low_water(const socket_handle& socket) noexcept : socket_(&socket) {}

    /// Announces that the peer will send at least `bytes` more of a message that has begun. 0: the
    /// message is complete, the next length is unknown, and any byte wakes the reader, at once if
    /// some are available. Fewer than 64 KiB are not waited for. A reader that sleeps for longer
    /// than the peer may be silent lowers the value to detect whether it is silent. Allocates:
    /// nothing. Blocks: never.
    void expect(std::size_t bytes) noexcept;

    static constexpr std::chrono::milliseconds slow{20};  // a megabyte of 50 a second
    static constexpr unsigned rests_max = 64;

private:
    void apply(std::size_t bytes) noexcept;

    const socket_handle* socket_;
    std::size_t applied_ = 1;                                      // the value that the kernel has
    std::optional<std::chrono::steady_clock::time_point> raised_;  // in this message
    unsigned rests_ = 0;                                           // messages without a mark
    bool is_within_ = false;                                       // within a message
    bool is_resting_ = false;
};

}  // namespace sluice::io
