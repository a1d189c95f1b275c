#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/intrusive_list.hpp"

#include "sluice/base/buffer_pool.hpp"
#include "sluice/io/stream/receive_low_water.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/core/one_shot_event.hpp"
#include "sluice/smb/server/core/published_counter.hpp"
#include "sluice/smb/server/core/ring_queue.hpp"
#include "sluice/smb/server/net/reply_payload.hpp"
#include "sluice/smb/server/net/splice_pipes.hpp"

namespace sluice::smb::server {

/// Receives the frames of a connection: SMB over TCP puts four bytes with the length before each
/// ([MS-SMB2] 2.1).
///
/// Small frames are read several at a time into a small buffer of its own and copied out of it.
/// While more arrive than that holds, they are read into a buffer of the pool, which the connection
/// releases once it has received less. The rest of a large frame is received into its final buffer;
/// while large frames arrive, that is all but their first bytes. Allocates: its own buffer; all
/// others are the pool's. Thread safety: the loop's thread; one receive at a time.
class frame_reader {
public:
    frame_reader(io::socket_handle& socket, buffer_source buffers) noexcept;

    /// Returns the next frame, without its length. Errors: those of the socket; EMSGSIZE if it is
    /// longer than `bytes_max`; EPROTO if its first byte is not zero, or the stream ends within it;
    /// ENOMEM. An empty buffer: the peer has closed between two frames. Suspends: until the frame
    /// has arrived.
    [[nodiscard]] io::task<result<pool_buffer>> next(std::size_t bytes_max) noexcept;

private:
    [[nodiscard]] io::task<result<std::size_t>> read_some(std::span<std::byte> into) noexcept;
    [[nodiscard]] std::span<std::byte> room_to_stage() noexcept;
    [[nodiscard]] const std::byte* staged() const noexcept { return many_ ? many_.data() : few_.data(); }
    void record_staged(std::size_t bytes) noexcept;

    io::socket_handle& socket_;
    io::receive_low_water low_water_;
    buffer_source buffers_;
    std::vector<std::byte> few_;
    pool_buffer many_;       // holds the staged bytes, if there is one
    std::size_t begin_ = 0;  // first staged byte that is not yet taken
    std::size_t end_ = 0;
    bool last_was_large_ = false;  // the next probably is, too: stage little of it
    bool many_come_ = false;       // more at a time than `few_` holds
};

/// A piece of a frame: the bytes of a buffer after the first `skipped`; or, without a buffer, bytes
/// of static lifetime; or part of a file.
struct frame_piece {
    pool_buffer memory{};
    std::size_t skipped = 0;
    std::span<const std::byte> constant{};
    file_range range{};

    [[nodiscard]] bool is_file() const noexcept { return range.file != nullptr; }
    [[nodiscard]] std::size_t size() const noexcept { return is_file() ? range.length : bytes().size(); }
    /// Returns the bytes of a piece in memory.
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
        return memory ? memory.bytes().subspan(skipped) : constant;
    }
};

/// Sends frames on a connection, in the order in which they were queued: many in memory with one
/// system call, those that end in a part of a file with a call of their own for the file's pages.
///
/// Invariants:
///   1. `unsent_bytes_` is the sum of the pieces in `pieces_`, less `sent_of_first_`, and part of
///   `queued_bytes_`.
///   2. `sent_of_first_` is less than the first piece, and 0 without one.
///   3. Waiters for room resume in order of arrival.
/// Thread safety: the loop's thread; has_delivered() any, as long as the connection stays.
class frame_writer {
public:
    frame_writer(io::io_multiplexer& loop, io::socket_handle& socket, splice_pipes& pipes) noexcept;
    frame_writer(const frame_writer&) = delete;
    frame_writer& operator=(const frame_writer&) = delete;
    ~frame_writer() { ENSURE(waiters_.empty(), "a writer is destroyed after the waiters for room"); }

    /// Queues the next piece; dropped if the connection is broken. Those of one frame, its
    /// length first, are given without suspending in between; a file never comes first.
    /// Allocates: the queue, amortised.
    void put(frame_piece piece);
    /// Lets run() end once everything has been sent.
    void finish() noexcept;

    /// Sends the queued pieces until finish() or an error, which it returns. Spawned once.
    [[nodiscard]] io::task<result<void>> run() noexcept;

    [[nodiscard]] std::size_t unsent_bytes() const noexcept { return unsent_bytes_.value(); }
    /// Returns the number of bytes ever queued: the position in the stream at which the last frame
    /// ends.
    [[nodiscard]] std::uint64_t queued_bytes() const noexcept { return queued_bytes_.value(); }
    /// Returns whether the peer has everything up to there, as far as this host knows: the kernel
    /// waits for no acknowledgement of it any more.
    [[nodiscard]] bool has_delivered(std::uint64_t up_to) const noexcept;

    /// Waits until at most `bytes` are unsent, or the connection is broken. One waiter at a time.
    [[nodiscard]] io::task<void> drained_to(std::size_t bytes) noexcept;

    /// Waits until little is left to send, or the connection is broken. A reply fills a large
    /// buffer only right before it is sent. So one buffer, still in the CPU's cache, serves many
    /// replies, and a client that receives nothing occupies no memory. First come, first served; a
    /// waiter that resumes and then waits for something else lets the next one pass.
    [[nodiscard]] io::task<void> has_room() noexcept;

private:
    struct waiter {
        explicit waiter(io::io_multiplexer& loop) noexcept : turn(loop) {}
        loop_event<bool> turn;
        list_hook<waiter> link;
    };

    [[nodiscard]] io::task<result<void>> send_some() noexcept;
    [[nodiscard]] io::task<result<void>> send_memory(std::size_t pieces) noexcept;
    [[nodiscard]] io::task<result<void>> send_file(std::size_t piece) noexcept;
    void forget_sent(std::size_t sent_bytes) noexcept;
    void wake_drained() noexcept;
    void wake_waiter() noexcept;
    [[nodiscard]] bool is_nearly_drained() const noexcept;

    io::io_multiplexer& loop_;
    io::socket_handle& socket_;
    splice_pipes& pipes_;
    ring_queue<frame_piece> pieces_;
    std::size_t sent_of_first_ = 0;
    published_counter unsent_bytes_;
    published_counter queued_bytes_;
    std::size_t drained_bytes_ = 0;
    bool is_finishing_ = false;
    std::atomic<bool> is_broken_{false};
    loop_event<bool> has_work_;
    loop_event<bool> is_drained_;
    bool awaits_drained_ = false;
    intrusive_list<waiter, &waiter::link> waiters_;
};

}  // namespace sluice::smb::server
