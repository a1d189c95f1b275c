#pragma once

#include <chrono>
#include <cstddef>
#include <optional>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

/// Lets who reads a TCP socket sleep until much of a long message is there, rather than be woken for each
/// segment of it: waking costs whoever sends, on the same host, more than the segment does.
///
/// While `expect()`ed bytes are missing, a read that has to wait ends when that many have come, or 1 MiB, or
/// the stream has ended, or the kernel has no room for more. One that is tried at once takes the bytes that
/// are there; a blocking one without a deadline may wait for all of its buffer. async_ready waits as a read
/// does. A blocking read of a Unix stream honours the mark; otherwise sockets of other kinds take no notice.
/// Over a slow line being woken costs next to nothing, and to let the kernel's room fill up stops the sender
/// for a round trip. So after a message that took longer than `slow` the next `rests_max` wake the reader as
/// ever. Thread safety: the thread that reads. Source: socket(7), SO_RCVLOWAT.
class receive_low_water {
public:
    /// `socket` stays where it is for as long as this.
    explicit receive_low_water(const socket_handle& socket) noexcept : socket_(&socket) {}

    /// The peer owes at least `bytes` more of what it has begun. 0: that is there, nobody knows what comes
    /// next, and any byte wakes the reader; if some are there, at once. Less than 64 KiB are not waited for.
    /// Who sleeps for longer than the peer may be silent lowers it to learn whether it is. Allocates:
    /// nothing. Blocks: never.
    void expect(std::size_t bytes) noexcept;

    static constexpr std::chrono::milliseconds slow{20};  // a megabyte of 50 a second
    static constexpr unsigned rests_max = 64;

private:
    void tell(std::size_t bytes) noexcept;

    const socket_handle* socket_;
    std::size_t told_ = 1;                                         // the kernel
    std::optional<std::chrono::steady_clock::time_point> raised_;  // in this message
    unsigned rests_ = 0;                                           // messages that will not be asked for
    bool is_within_ = false;                                       // a message
    bool is_resting_ = false;
};

}  // namespace sluice::io
