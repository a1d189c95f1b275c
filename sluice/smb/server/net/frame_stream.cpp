#include "sluice/smb/server/net/frame_stream.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "sluice/io/stream/send_queue.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::size_t few_bytes = 2U << 10;  // a dozen requests to read, or four to open
constexpr std::size_t many_bytes = 32U << 10;
constexpr std::size_t bytes_before_large = 512;
constexpr std::size_t length_bytes = 4;
constexpr std::size_t pieces_per_send = 64;
constexpr std::size_t nearly_drained_bytes = 256U << 10;

}  // namespace

frame_reader::frame_reader(io::socket_handle& socket, buffer_source buffers) noexcept
    : socket_(socket), low_water_(socket), buffers_(buffers), few_(few_bytes) {}

io::task<result<std::size_t>> frame_reader::read_some(std::span<std::byte> into) noexcept {
    const io::io_request<io::bytes_type> wanted{.buffers = into};
    const auto got = co_await io::co_read(socket_, wanted);
    if (not got) co_return failure(got.error());
    co_return got.bytes_transferred();
}

// Where the next bytes are to go, behind those of a length that has not come whole, which are moved
// to where they stand then.
std::span<std::byte> frame_reader::room_to_stage() noexcept {
    std::array<std::byte, length_bytes> begun{};
    const std::size_t begun_bytes = end_ - begin_;
    ENSURE(begin_ <= end_ and begun_bytes < length_bytes, "the bytes that move are part of a length");
    std::memcpy(begun.data(), staged() + begin_, begun_bytes);
    if (not many_come_ or last_was_large_)
        many_ = {};
    else if (not many_)
        many_ = buffers_.take(many_bytes);
    const std::span<std::byte> all = many_ ? many_.bytes() : std::span(few_);
    std::memcpy(all.data(), begun.data(), begun_bytes);
    begin_ = 0;
    end_ = begun_bytes;
    return all.first(last_was_large_ ? bytes_before_large : all.size()).subspan(end_);
}

void frame_reader::record_staged(std::size_t bytes) noexcept {
    end_ += bytes;
    ENSURE(end_ <= (many_ ? many_.size() : few_.size()), "no more is received than there is room for");
    if (not last_was_large_) many_come_ = end_ >= few_bytes;
}

io::task<result<pool_buffer>> frame_reader::next(std::size_t bytes_max) noexcept {
    while (end_ - begin_ < length_bytes) {
        const std::span<std::byte> room = room_to_stage();
        const result<std::size_t> got = co_await read_some(room);
        if (not got) co_return failure(got.error());
        if (*got == 0) {
            if (end_ == 0) co_return pool_buffer{};
            co_return failure({EPROTO, "receive a frame: the stream ended within its length"});
        }
        record_staged(*got);
    }
    const std::byte* const prefix = staged() + begin_;
    const std::size_t length = std::to_integer<std::size_t>(prefix[1]) << 16 |
                               std::to_integer<std::size_t>(prefix[2]) << 8 |
                               std::to_integer<std::size_t>(prefix[3]);
    if (prefix[0] != std::byte{0}) co_return failure({EPROTO, "receive a frame: not a session message"});
    if (length > bytes_max) co_return failure({EMSGSIZE, "receive a frame: longer than allowed"});
    begin_ += length_bytes;
    last_was_large_ = length > many_bytes;

    pool_buffer frame = buffers_.take(length);
    if (not frame) co_return failure({ENOMEM, "receive a frame"});
    std::size_t filled = std::min(length, end_ - begin_);
    std::memcpy(frame.data(), staged() + begin_, filled);
    begin_ += filled;
    while (filled != length) {
        const std::span<std::byte> room = frame.bytes().subspan(filled);
        low_water_.expect(room.size());
        const result<std::size_t> got = co_await read_some(room);
        if (not got) co_return failure(got.error());
        if (*got == 0) co_return failure({EPROTO, "receive a frame: the stream ended within it"});
        filled += *got;
        ENSURE(filled <= length, "no more is received than there is room for");
    }
    low_water_.expect(0);
    co_return frame;
}

frame_writer::frame_writer(io::io_multiplexer& loop, io::socket_handle& socket, splice_pipes& pipes) noexcept
    : loop_(loop), socket_(socket), pipes_(pipes), has_work_(loop), is_drained_(loop) {}

void frame_writer::put(frame_piece piece) {
    if (is_broken_.load(std::memory_order_relaxed)) return;
    ENSURE(loop_.is_owner(), "frames are queued on the loop that sends them");
    ENSURE(not piece.is_file() or not pieces_.empty(), "the length of a frame comes before a file");
    unsent_bytes_.set(unsent_bytes() + piece.size());
    queued_bytes_.set(queued_bytes() + piece.size());
    ENSURE(unsent_bytes() <= queued_bytes(), "unsent bytes were queued");
    pieces_.push_back(std::move(piece));
    has_work_.set(true);
}

bool frame_writer::has_delivered(std::uint64_t up_to) const noexcept {
    if (is_broken_.load(std::memory_order_relaxed)) return false;
    // The sum first: bytes that are queued or sent in between count as undelivered, never the other
    // way round.
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
        if (pieces_.empty()) {
            if (is_finishing_) break;
            (void)co_await has_work_.wait();
            has_work_.reset();
            continue;
        }
        outcome = co_await send_some();
        if (not outcome) break;
        wake_drained();
        wake_waiter();
    }
    ENSURE(not pieces_.empty() or unsent_bytes() == 0, "unsent bytes are those of the queued pieces");
    is_broken_.store(true, std::memory_order_relaxed);
    pieces_.clear();
    unsent_bytes_.set(0);
    wake_drained();
    wake_waiter();
    co_return outcome;
}

// Up to the first file, less the piece before it, which goes with it.
io::task<result<void>> frame_writer::send_some() noexcept {
    std::size_t end = 0;
    while (end != pieces_.size() and end != pieces_per_send and not pieces_[end].is_file())
        ++end;
    const bool is_before_file = end != pieces_.size() and pieces_[end].is_file();
    if (is_before_file and end <= 1) return send_file(end);
    return send_memory(is_before_file ? end - 1 : end);
}

io::task<result<void>> frame_writer::send_memory(std::size_t pieces) noexcept {
    ENSURE(pieces != 0 and sent_of_first_ <= pieces_.front().size(), "a transfer begins in the first piece");
    std::array<io::const_buffer, pieces_per_send> list;
    for (std::size_t i = 0; i != pieces; ++i)
        list[i] = pieces_[i].bytes().subspan(i == 0 ? sent_of_first_ : 0);
    const io::io_request<io::const_buffers_type> wanted{.buffers = std::span(list).first(pieces)};
    const auto sent = co_await io::co_write(socket_, wanted);
    if (not sent) co_return failure(sent.error());
    forget_sent(sent.bytes_transferred());
    co_return result<void>{};
}

io::task<result<void>> frame_writer::send_file(std::size_t piece) noexcept {
    ENSURE(piece != 0 or sent_of_first_ == 0, "a file is sent whole or not at all");
    const file_range& range = pieces_[piece].range;
    const std::span<const std::byte> head =
        piece == 0 ? std::span<const std::byte>{} : pieces_[0].bytes().subspan(sent_of_first_);
    const io::send_file_request wanted{.header = head,
                                       .offset = range.offset,
                                       .length = range.length,
                                       .when_short = io::short_file::filled_with_zeros};
    const std::size_t bytes = head.size() + range.length;
    splice_pipes::extent_pin through(pipes_);
    result<std::uint64_t> sent{};
    if (through.pipe() != nullptr)
        sent = co_await io::co_send_file(*range.file, socket_, wanted, *through.pipe());
    else
        sent = co_await io::co_send_file(*range.file, socket_, wanted);
    if (not sent) co_return failure(sent.error());
    // An error after a part was sent, or a cancellation: the peer would take the next bytes for the
    // rest.
    if (*sent != bytes) co_return failure({ECONNABORTED, "send a file: cut short"});
    forget_sent(bytes);
    co_return result<void>{};
}

void frame_writer::forget_sent(std::size_t sent_bytes) noexcept {
    ENSURE(sent_bytes <= unsent_bytes(), "no more is sent than was queued");
    unsent_bytes_.set(unsent_bytes() - sent_bytes);
    sent_of_first_ += sent_bytes;
    while (not pieces_.empty() and sent_of_first_ >= pieces_.front().size()) {
        sent_of_first_ -= pieces_.front().size();
        pieces_.pop_front();
    }
    ENSURE(not pieces_.empty() or sent_of_first_ == 0,
           "the sent part of the first piece is less than the piece");
}

void frame_writer::wake_drained() noexcept {
    if (awaits_drained_ and unsent_bytes() <= drained_bytes_) is_drained_.set(true);
}

io::task<void> frame_writer::drained_to(std::size_t bytes) noexcept {
    if (is_broken_.load(std::memory_order_relaxed) or unsent_bytes() <= bytes) co_return;
    ENSURE(not awaits_drained_, "one coroutine waits until little is unsent");
    drained_bytes_ = bytes;
    awaits_drained_ = true;
    (void)co_await is_drained_.wait();
    is_drained_.reset();
    awaits_drained_ = false;
}

bool frame_writer::is_nearly_drained() const noexcept {
    return is_broken_.load(std::memory_order_relaxed) or unsent_bytes() <= nearly_drained_bytes;
}

void frame_writer::wake_waiter() noexcept {
    if (not waiters_.empty() and is_nearly_drained()) waiters_.front()->turn.set(true);
}

io::task<void> frame_writer::has_room() noexcept {
    if (waiters_.empty() and is_nearly_drained()) co_return;
    waiter mine(loop_);
    waiters_.push_back(mine);
    do {
        (void)co_await mine.turn.wait();
        mine.turn.reset();
    } while (not is_nearly_drained());
    ENSURE(waiters_.front() == &mine, "waiters resume in order of arrival");
    waiters_.erase(mine);
    // The next one looks for itself, after this one has put its reply into the queue,
    // or waits for a disk.
    wake_waiter();
}

}  // namespace sluice::smb::server
