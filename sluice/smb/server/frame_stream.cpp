#include "sluice/smb/server/frame_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sluice/io/send_queue.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::size_t staging_bytes = 64U << 10;
constexpr std::size_t length_bytes = 4;
constexpr std::size_t pieces_per_send = 64;

}  // namespace

frame_reader::frame_reader(io::socket_handle& socket, buffer_pool& buffers) noexcept
    : socket_(socket), buffers_(buffers), staged_(staging_bytes) {}

io::task<result<std::size_t>> frame_reader::read_some(std::span<std::byte> into) noexcept {
    const io::io_request<io::bytes_type> wanted{.buffers = into};
    const auto got = co_await io::co_read(socket_, wanted);
    if (not got) co_return failure(got.error());
    co_return got.bytes_transferred();
}

io::task<result<pool_buffer>> frame_reader::next(std::size_t bytes_max) noexcept {
    while (end_ - begin_ < length_bytes) {
        std::memmove(staged_.data(), staged_.data() + begin_, end_ - begin_);
        end_ -= begin_;
        begin_ = 0;
        const std::span<std::byte> room = std::span(staged_).subspan(end_);
        const result<std::size_t> got = co_await read_some(room);
        if (not got) co_return failure(got.error());
        if (*got == 0) {
            if (end_ == 0) co_return pool_buffer{};
            co_return failure({EPROTO, "receive a frame: the stream ended within its length"});
        }
        end_ += *got;
    }
    const std::byte* const prefix = staged_.data() + begin_;
    const std::size_t length = std::to_integer<std::size_t>(prefix[1]) << 16 |
                               std::to_integer<std::size_t>(prefix[2]) << 8 |
                               std::to_integer<std::size_t>(prefix[3]);
    if (prefix[0] != std::byte{0}) co_return failure({EPROTO, "receive a frame: not a session message"});
    if (length > bytes_max) co_return failure({EMSGSIZE, "receive a frame: longer than allowed"});
    begin_ += length_bytes;

    pool_buffer frame = buffers_.take(length);
    if (not frame) co_return failure({ENOMEM, "receive a frame"});
    std::size_t filled = std::min(length, end_ - begin_);
    std::memcpy(frame.data(), staged_.data() + begin_, filled);
    begin_ += filled;
    while (filled != length) {
        const std::span<std::byte> room = frame.bytes().subspan(filled);
        const result<std::size_t> got = co_await read_some(room);
        if (not got) co_return failure(got.error());
        if (*got == 0) co_return failure({EPROTO, "receive a frame: the stream ended within it"});
        filled += *got;
    }
    co_return frame;
}

frame_writer::frame_writer(io::io_multiplexer& loop, io::socket_handle& socket) noexcept
    : socket_(socket), has_work_(loop), is_drained_(loop) {}

void frame_writer::send(outgoing_frame frame) {
    if (is_broken_.load(std::memory_order_relaxed)) return;
    unsent_bytes_.set(unsent_bytes() + frame.bytes);
    queued_bytes_.set(queued_bytes() + frame.bytes);
    frames_.push_back(std::move(frame));
    has_work_.set(true);
}

bool frame_writer::has_delivered(std::uint64_t up_to) const noexcept {
    if (is_broken_.load(std::memory_order_relaxed)) return false;
    // The sum first: what is queued or moves on meanwhile is taken for undelivered, never the other way
    // round.
    const std::uint64_t queued = queued_bytes();
    const std::uint64_t unsent = unsent_bytes();
    const result<std::size_t> in_kernel = io::undelivered_bytes(socket_);
    if (not in_kernel or queued < unsent + *in_kernel) return false;
    return up_to <= queued - unsent - *in_kernel;
}

void frame_writer::finish() noexcept {
    is_finishing_ = true;
    has_work_.set(true);
}

io::task<result<void>> frame_writer::run() noexcept {
    result<void> outcome{};
    for (;;) {
        if (frames_.empty()) {
            if (is_finishing_) break;
            (void)co_await has_work_.wait();
            has_work_.reset();
            continue;
        }
        outcome = co_await send_some();
        if (not outcome) break;
        wake_drained();
    }
    is_broken_.store(true, std::memory_order_relaxed);
    frames_.clear();
    unsent_bytes_.set(0);
    wake_drained();
    co_return outcome;
}

io::task<result<void>> frame_writer::send_some() noexcept {
    std::array<io::const_buffer, pieces_per_send> pieces;
    std::size_t count = 0;
    std::size_t skip = sent_of_first_;
    for (const outgoing_frame& frame : frames_) {
        if (count == pieces.size()) break;
        for (const frame_piece& piece : frame.pieces) {
            if (count == pieces.size()) break;
            const std::span<const std::byte> bytes = piece.bytes();
            const std::size_t skipped = std::min(skip, bytes.size());
            skip -= skipped;
            if (skipped != bytes.size()) pieces[count++] = bytes.subspan(skipped);
        }
    }
    const io::io_request<io::const_buffers_type> wanted{.buffers = std::span(pieces).first(count)};
    const auto sent = co_await io::co_write(socket_, wanted);
    if (not sent) co_return failure(sent.error());
    forget_sent(sent.bytes_transferred());
    co_return result<void>{};
}

void frame_writer::forget_sent(std::size_t sent_bytes) noexcept {
    unsent_bytes_.set(unsent_bytes() - sent_bytes);
    sent_of_first_ += sent_bytes;
    while (not frames_.empty() and sent_of_first_ >= frames_.front().bytes) {
        sent_of_first_ -= frames_.front().bytes;
        frames_.pop_front();
    }
}

void frame_writer::wake_drained() noexcept {
    if (awaits_drained_ and unsent_bytes() <= drained_bytes_) is_drained_.set(true);
}

io::task<void> frame_writer::drained_to(std::size_t bytes) noexcept {
    if (is_broken_.load(std::memory_order_relaxed) or unsent_bytes() <= bytes) co_return;
    drained_bytes_ = bytes;
    awaits_drained_ = true;
    (void)co_await is_drained_.wait();
    is_drained_.reset();
    awaits_drained_ = false;
}

}  // namespace sluice::smb::server
