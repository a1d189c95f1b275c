#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "sluice/io/awaitable.hpp"
#include "sluice/io/socket_handle.hpp"
#include "sluice/io/task.hpp"
#include "sluice/smb/server/buffer_pool.hpp"
#include "sluice/smb/server/event.hpp"

namespace sluice::smb::server {

/// Takes frames off a connection: SMB over TCP puts four bytes with the length before each ([MS-SMB2] 2.1).
///
/// Small frames are read many at a time into one staging buffer and copied out of it; what is left of a large
/// one goes straight to where it stays. Allocates: the staging buffer; frames are the pool's.
/// Thread safety: the loop's thread; one receive at a time.
class frame_reader {
public:
    frame_reader(io::socket_handle& socket, buffer_pool& buffers) noexcept;

    /// The next frame, without its length. Errors: those of the socket; EMSGSIZE if it is longer than
    /// `bytes_max`; EPROTO if its first byte is not zero, or the stream ends within it; ENOMEM. An empty
    /// buffer: the peer has closed between two frames. Suspends: until it is there.
    [[nodiscard]] io::task<result<pool_buffer>> next(std::size_t bytes_max) noexcept;

private:
    [[nodiscard]] io::task<result<std::size_t>> read_some(std::span<std::byte> into) noexcept;

    io::socket_handle& socket_;
    buffer_pool& buffers_;
    std::vector<std::byte> staged_;
    std::size_t begin_ = 0;  // of what is staged and not yet taken
    std::size_t end_ = 0;
};

/// A piece of a frame: the bytes of a buffer behind the first `skipped`, or, without a buffer, bytes that are
/// always there.
struct frame_piece {
    pool_buffer memory;
    std::size_t skipped = 0;
    std::span<const std::byte> constant{};

    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return memory ? memory.bytes().subspan(skipped) : constant;
    }
};

/// One reply, or several in one frame, ready to go: pieces of memory in order, the frame's length first.
struct outgoing_frame {
    std::vector<frame_piece> pieces;
    std::size_t bytes = 0;

    void add(frame_piece piece) {
        bytes += piece.bytes().size();
        pieces.push_back(std::move(piece));
    }
};

/// A number that one thread changes and others look at.
class told_count {
public:
    // acquire and release: who reads several of them reads them in this order.
    [[nodiscard]] std::uint64_t value() const noexcept { return value_.load(std::memory_order_acquire); }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_release); }

private:
    std::atomic<std::uint64_t> value_{0};
};

/// Puts frames on a connection, in the order they were given, many in one system call.
///
/// Invariant: `unsent_bytes_` is the sum of the frames in `frames_`. Thread safety: the loop's thread;
/// has_delivered() any, as long as the connection stays.
class frame_writer {
public:
    frame_writer(io::io_multiplexer& loop, io::socket_handle& socket) noexcept;

    /// Queues a frame; dropped if the connection is broken. Allocates: the queue, amortised.
    void send(outgoing_frame frame);
    /// Lets run() end once everything has been sent.
    void finish() noexcept;

    /// Sends what is queued until finish() or an error, which is returned. Spawned once.
    [[nodiscard]] io::task<result<void>> run() noexcept;

    [[nodiscard]] std::size_t unsent_bytes() const noexcept { return unsent_bytes_.value(); }
    /// All that was ever queued: where in the stream the last frame ends.
    [[nodiscard]] std::uint64_t queued_bytes() const noexcept { return queued_bytes_.value(); }
    /// Whether the peer has everything up to there, as far as one can tell: our kernel waits for no
    /// acknowledgement of it any more.
    [[nodiscard]] bool has_delivered(std::uint64_t up_to) const noexcept;

    /// Waits until at most `bytes` are unsent, or the connection is broken. One waiter at a time.
    [[nodiscard]] io::task<void> drained_to(std::size_t bytes) noexcept;

private:
    [[nodiscard]] io::task<result<void>> send_some() noexcept;
    void forget_sent(std::size_t sent_bytes) noexcept;
    void wake_drained() noexcept;

    io::socket_handle& socket_;
    std::deque<outgoing_frame> frames_;
    std::size_t sent_of_first_ = 0;
    told_count unsent_bytes_;
    told_count queued_bytes_;
    std::size_t drained_bytes_ = 0;
    bool is_finishing_ = false;
    std::atomic<bool> is_broken_{false};
    event<bool> has_work_;
    event<bool> is_drained_;
    bool awaits_drained_ = false;
};

}  // namespace sluice::smb::server
