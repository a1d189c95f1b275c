#include "sluice/io/call/splice_transfer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/checked_byte_count.hpp"
#include "sluice/io/call/limits.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"
#include "sluice/io/call/socket_call.hpp"

namespace sluice::io {
namespace {

using what = splice_step::what;

// Unlike send, splice and sendfile have no flag against SIGPIPE. So, unless the thread has a guard,
// the signal is blocked during the calls, and one that they may have raised is discarded.
class no_broken_pipe_signal {
public:
    explicit no_broken_pipe_signal(bool is_needed) noexcept
        : is_needed_(is_needed and not sigpipe_guard::is_active()) {
        if (is_needed_) before_ = detail::block_sigpipe();
    }
    ~no_broken_pipe_signal() {
        if (is_needed_) detail::unblock_sigpipe(before_, raised_);
    }
    no_broken_pipe_signal(const no_broken_pipe_signal&) = delete;
    no_broken_pipe_signal& operator=(const no_broken_pipe_signal&) = delete;

    void record(int code) noexcept { raised_ = raised_ or code == EPIPE; }

private:
    detail::sigpipe_state before_;
    bool is_needed_;
    bool raised_ = false;
};

bool is_file(const native_handle& native) noexcept {
    return native.kind == handle_kind::file;
}

bool is_socket(const native_handle& native) noexcept {
    return native.kind == handle_kind::socket;
}

constexpr unsigned splice_flags = SPLICE_F_NONBLOCK | SPLICE_F_MOVE;

// splice(2) with the offset of an end that has one.
ssize_t call_splice(const native_handle& from, extent_type from_offset, const native_handle& to,
                    extent_type to_offset, std::size_t bytes, unsigned flags = splice_flags) noexcept {
    auto in = static_cast<off64_t>(from_offset);
    auto out = static_cast<off64_t>(to_offset);
    return checked_byte_count(::splice(from.descriptor, is_file(from) ? &in : nullptr, to.descriptor,
                                       is_file(to) ? &out : nullptr, bytes, flags),
                              bytes);
}

// Writes memory to the target's stream.
ssize_t put(const splice_transfer& t, const_bytes_type bytes, bool more_follows) noexcept {
    if (not is_socket(t.to)) return ::write(t.to.descriptor, bytes.data(), bytes.size());
    const int flags = MSG_NOSIGNAL | (t.waits ? 0 : MSG_DONTWAIT) | (more_follows ? MSG_MORE : 0);
    return ::send(t.to.descriptor, bytes.data(), bytes.size(), flags);
}

// Writes memory to a file, all of it. Returns the bytes written before an error, or -1.
ssize_t store(const native_handle& to, extent_type offset, bytes_type bytes) noexcept {
    std::size_t stored = 0;
    while (stored < bytes.size()) {
        const bytes_type left = bytes.subspan(stored);
        const ssize_t done = checked_byte_count(
            ::pwrite(to.descriptor, left.data(), left.size(), static_cast<off_t>(offset + stored)),
            left.size());
        if (done < 0 and errno == EINTR) continue;
        if (done <= 0) return stored != 0 ? static_cast<ssize_t>(stored) : -1;
        stored += static_cast<std::size_t>(done);
    }
    return static_cast<ssize_t>(stored);
}

// On the stack, for callers that pass no memory of their own.
using copy_buffer = std::array<std::byte, limits::splice_stack_buffer_bytes>;

ssize_t copy_from_file(splice_transfer& t, std::size_t bytes) noexcept {
    copy_buffer memory;
    const std::size_t step = std::min(bytes, memory.size());
    const auto at = static_cast<off_t>(t.from_offset + t.payload());
    const ssize_t got = checked_byte_count(::pread(t.from.descriptor, memory.data(), step, at), step);
    if (got <= 0) return got;
    // Bytes that are not written now are read again.
    const auto piece = std::span(memory).first(static_cast<std::size_t>(got));
    return put(t, piece, static_cast<std::size_t>(got) < bytes);
}

// Waits, if it may, until the memory is full: one wake-up and one write for all of it.
ssize_t receive_into(const splice_transfer& t, bytes_type memory) noexcept {
    if (not is_socket(t.from)) return ::read(t.from.descriptor, memory.data(), memory.size());
    return ::recv(t.from.descriptor, memory.data(), memory.size(), t.waits ? MSG_WAITALL : MSG_DONTWAIT);
}

ssize_t copy_to_file_by(splice_transfer& t, std::size_t bytes, bytes_type memory) noexcept {
    const bytes_type piece = memory.first(std::min(bytes, memory.size()));
    const ssize_t got = receive_into(t, piece);
    if (got <= 0) return got;
    return store(t.to, t.to_offset + t.moved, piece.first(static_cast<std::size_t>(got)));
}

ssize_t copy_to_file(splice_transfer& t, std::size_t bytes) noexcept {
    if (not t.scratch.empty()) return copy_to_file_by(t, bytes, t.scratch);
    copy_buffer memory;
    return copy_to_file_by(t, bytes, memory);
}

// Transfers from a file to a socket through a pipe. Returns the number of bytes that the socket
// took.
ssize_t send_through(splice_transfer& t, std::size_t bytes) noexcept {
    transit_pipe& pipe = *t.through;
    ENSURE(pipe.pending <= bytes or pipe.pending == 0, "the pipe holds more than is left to send");
    if (pipe.pending == 0) {
        const ssize_t got =
            call_splice(t.from, t.from_offset + t.payload(), pipe.writer, 0, std::min(bytes, pipe.capacity));
        if (got <= 0) return got;
        pipe.add(static_cast<std::size_t>(got));
    }
    // Otherwise TCP would send the rest of each pipe's content as a separate segment.
    const unsigned more = bytes > pipe.pending ? SPLICE_F_MORE : 0U;
    const ssize_t sent =
        call_splice(pipe.reader, 0, t.to, 0, std::min(bytes, pipe.pending), splice_flags | more);
    if (sent > 0) pipe.remove(static_cast<std::size_t>(sent));
    return sent;
}

ssize_t copy_out_of_pipe(splice_transfer& t, bytes_type memory) noexcept {
    transit_pipe& pipe = *t.through;
    ENSURE(pipe.pending != 0, "nothing is in the pipe");
    const bytes_type piece = memory.first(std::min(memory.size(), pipe.pending));
    const ssize_t got = ::read(pipe.reader.descriptor, piece.data(), piece.size());
    if (got <= 0) return -1;
    pipe.remove(static_cast<std::size_t>(got));
    return store(t.to, t.to_offset + t.moved, piece.first(static_cast<std::size_t>(got)));
}

// Moves the content of the pipe into the file. Returns the number of bytes, or -1.
ssize_t drain_to_file(splice_transfer& t) noexcept {
    transit_pipe& pipe = *t.through;
    ENSURE(pipe.pending != 0, "nothing is in the pipe, which reads like the end");
    const ssize_t stored = call_splice(pipe.reader, 0, t.to, t.to_offset + t.moved, pipe.pending);
    if (stored < 0 and errno == EINVAL) {  // an append-only file, or a file system without splice
        if (not t.scratch.empty()) return copy_out_of_pipe(t, t.scratch);
        copy_buffer memory;
        return copy_out_of_pipe(t, memory);
    }
    if (stored > 0) pipe.remove(static_cast<std::size_t>(stored));
    return stored;
}

// Transfers from a socket to a file through a pipe. Returns the number of bytes that the file took:
// all received bytes, unless it fails.
ssize_t receive_through(splice_transfer& t, std::size_t bytes) noexcept {
    transit_pipe& pipe = *t.through;
    ENSURE(pipe.pending <= bytes or pipe.pending == 0, "the pipe holds more than is left to receive");
    if (pipe.pending == 0) {
        const ssize_t got = call_splice(t.from, 0, pipe.writer, 0, std::min(bytes, pipe.capacity));
        if (got <= 0) return got;
        pipe.add(static_cast<std::size_t>(got));
    }
    return drain_to_file(t);
}

// Moves one segment in the way that these two support. Returns the bytes `to` took, 0 at the end,
// or -1 with errno.
ssize_t move_piece(splice_transfer& t, std::size_t bytes) noexcept {
    ENSURE(bytes != 0, "moves nothing, which reads like the end");
    if (t.duplicates) return ::tee(t.from.descriptor, t.to.descriptor, bytes, SPLICE_F_NONBLOCK);
    if (is_file(t.from)) {
        if (t.copies) return copy_from_file(t, bytes);
        if (not is_socket(t.to)) return call_splice(t.from, t.from_offset + t.payload(), t.to, 0, bytes);
        if (t.through != nullptr) return send_through(t, bytes);
        auto at = static_cast<off_t>(t.from_offset + t.payload());
        return checked_byte_count(::sendfile(t.to.descriptor, t.from.descriptor, &at, bytes), bytes);
    }
    if (is_file(t.to)) {
        if (t.copies) return copy_to_file(t, bytes);
        if (is_socket(t.from))
            return t.through != nullptr ? receive_through(t, bytes) : copy_to_file(t, bytes);
        return call_splice(t.from, 0, t.to, t.to_offset + t.moved, bytes);
    }
    return call_splice(t.from, 0, t.to, 0, bytes);
}

// For the socket's side of a splice, the kernel checks O_NONBLOCK alone: SPLICE_F_NONBLOCK is for
// pipes. A transfer that may wait does so in the call, because EAGAIN, a poll and a second call
// cost more.
int prepare(splice_transfer& t) noexcept {
    ENSURE(not(is_file(t.from) and is_file(t.to)), "one end of a transfer is a stream");
    ENSURE(t.through == nullptr or is_socket(t.from) or is_socket(t.to),
           "a pipe needs no pipe to go through");
    ENSURE(t.through == nullptr or t.through->capacity != 0, "the splice_pipe has been moved from");
    t.is_prepared = true;
    if (t.waits) return 0;
    // Copied by calls with flags that decide whether they wait.
    if (is_socket(t.from) and is_file(t.to) and t.through == nullptr) return 0;
    for (native_handle* const end : {&t.from, &t.to}) {
        if (not is_socket(*end)) continue;
        if (auto set = make_nonblocking(*end); not set) return set.error().code();
    }
    return 0;
}

bool has_something(const native_handle& native) noexcept {
    pollfd watched{.fd = native.descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&watched, 1, 0) > 0;
}

what side_that_waits(const splice_transfer& t) noexcept {
    if (is_file(t.from) or t.moved < t.header.size()) return what::waits_for_target;
    if (is_file(t.to)) return what::waits_for_source;
    return has_something(t.from) ? what::waits_for_target : what::waits_for_source;
}

ssize_t put_zeros(splice_transfer& t, std::size_t bytes) noexcept {
    ENSURE(t.fills and is_file(t.from), "zeros stand for what a file no longer has");
    static constexpr std::array<std::byte, 16 * 1024> nothing{};
    const ssize_t sent =
        put(t, std::span(nothing).first(std::min(bytes, nothing.size())), bytes > nothing.size());
    if (sent > 0) t.zeros += static_cast<std::uint64_t>(sent);
    return sent;
}

ssize_t move_some(splice_transfer& t, std::size_t bytes) noexcept {
    if (t.moved < t.header.size()) return put(t, t.header.subspan(t.moved), t.length != 0);
    if (t.zeros != 0) return put_zeros(t, bytes);
    const ssize_t moved = move_piece(t, bytes);
    const bool file_ended = moved == 0 and is_file(t.from) and t.fills;
    return file_ended ? put_zeros(t, bytes) : moved;
}

}  // namespace

void transit_pipe::discard() noexcept {
    std::array<std::byte, 16 * 1024> nowhere;
    while (pending != 0) {
        const ssize_t got = ::read(reader.descriptor, nowhere.data(), nowhere.size());
        if (got < 0 and errno == EINTR) continue;
        if (got <= 0) pending = 0;
        if (got > 0) pending -= std::min(pending, static_cast<std::size_t>(got));
    }
}

void splice_transfer::restart() noexcept {
    moved = zeros = 0;
    is_prepared = copies = false;
    // No operation needs the bytes that an interrupted transfer has left in the pipe.
    if (through != nullptr) through->discard();
}

splice_step advance(splice_transfer& t) noexcept {
    if (not t.is_prepared) {
        if (const int code = prepare(t); code != 0) return {what::finished, code};
    }
    no_broken_pipe_signal quiet(not is_file(t.to));
    // A transfer that may wait blocks its thread, so no other operation needs a turn.
    std::size_t turn = t.waits ? std::numeric_limits<std::size_t>::max() : limits::splice_bytes_per_turn_max;
    for (;;) {
        const std::uint64_t left = t.length - t.payload();
        ENSURE(t.payload() <= t.length, "more was moved than was asked for");
        if (left == 0 and t.moved >= t.header.size()) return {};
        if (turn == 0) return {what::has_more, 0};
        const std::size_t bytes = std::min<std::uint64_t>(left, turn);
        const ssize_t moved = move_some(t, bytes);
        if (moved < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN) {
                const what side = side_that_waits(t);
                const bool will_do = t.ends_when_dry and t.moved != 0 and side == what::waits_for_source;
                return {will_do ? what::finished : side, 0};
            }
            quiet.record(errno);
            const bool can_copy = not t.copies and (is_file(t.from) or is_file(t.to));
            if (errno != EINVAL or not can_copy) return {what::finished, errno};
            t.copies = true;
            continue;
        }
        if (moved == 0) return {};
        t.moved += static_cast<std::uint64_t>(moved);
        turn -= std::min<std::size_t>(turn, static_cast<std::size_t>(moved));
        // A second tee would copy the same bytes again.
        if (t.duplicates) return {};
    }
}

}  // namespace sluice::io
