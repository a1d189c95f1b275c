#include "sluice/io/stream/splice.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "sluice/io/call/blocking.hpp"

namespace sluice::io {
namespace {

using what = splice_step::what;

// An earlier transfer may have made the description non-blocking; the multiplexer's record has
// this.
const native_handle& native_of(const io_handle& handle) noexcept {
    return detail::handle_access::registered(handle) != nullptr
               ? detail::handle_access::registered(handle)->native
               : handle.native();
}

splice_transfer sending(const io_handle& file, const io_handle& to, const send_file_request& request,
                        transit_pipe* through) noexcept {
    ENSURE(file.kind() == handle_kind::file and to.kind() != handle_kind::file,
           "send_file sends a file to a socket or pipe");
    return {.from = native_of(file),
            .to = native_of(to),
            .through = to.kind() == handle_kind::socket ? through : nullptr,
            .header = request.header,
            .from_offset = request.offset,
            .length = request.length,
            .fills = request.when_short == short_file::filled_with_zeros and request.length != to_the_end};
}

splice_transfer receiving(const io_handle& from, const io_handle& file, const receive_file_request& request,
                          transit_pipe* through) noexcept {
    ENSURE(file.kind() == handle_kind::file and from.kind() != handle_kind::file,
           "receive_file receives from a socket or pipe into a file");
    return {.from = native_of(from),
            .to = native_of(file),
            .through = from.kind() == handle_kind::socket ? through : nullptr,
            .scratch = request.scratch,
            .to_offset = request.offset,
            .length = request.length};
}

splice_transfer splicing(const io_handle& from, const io_handle& to, std::uint64_t length,
                         bool duplicates = false) noexcept {
    ENSURE(from.kind() != handle_kind::file and to.kind() != handle_kind::file,
           "files go by send_file and receive_file");
    return {.from = native_of(from), .to = native_of(to), .length = length, .duplicates = duplicates};
}

// Carries out a transfer, waiting on this thread. `from` and `to` are the handles of the transfer.
result<std::uint64_t> run(splice_transfer transfer, io_handle& from, io_handle& to, const char* name,
                          deadline within) noexcept {
    // Read only when there is a deadline to keep.
    const auto started =
        within.is_none() ? deadline::steady_clock::time_point{} : deadline::steady_clock::now();
    transfer.restart();
    transfer.waits = within.is_none();
    for (;;) {
        const splice_step step = advance(transfer);
        if (transfer.from.nonblocking) detail::handle_access::record_nonblocking(from);
        if (transfer.to.nonblocking) detail::handle_access::record_nonblocking(to);
        const auto outcome = [&](int code) -> result<std::uint64_t> {
            if (code == 0 or transfer.moved != 0) return transfer.moved;
            const io_handle& stream = from.kind() == handle_kind::file ? to : from;
            return failure({code, name, stream.descriptor()});
        };
        if (step.outcome == what::finished) return outcome(step.code);
        deadline::duration left = deadline::duration::max();
        if (not within.is_none()) {
            left = within.remaining(started, deadline::steady_clock::now(), deadline::system_clock::now());
            const bool must_end = step.outcome != what::has_more or not within.is_zero();
            if (left == deadline::duration::zero() and must_end) return outcome(ETIMEDOUT);
        }
        if (step.outcome == what::has_more) continue;
        const bool for_source = step.outcome == what::waits_for_source;
        const auto waited =
            wait_ready(for_source ? transfer.from : transfer.to, for_source ? direction::in : direction::out,
                       within.is_none() ? deadline() : deadline(left));
        if (not waited) return outcome(waited.error().code());
    }
}

}  // namespace

result<splice_pipe> splice_pipe::create(std::size_t capacity_bytes) noexcept {
    auto made = pipe_handle::anonymous();
    if (not made) return failure(made.error());
    // Beyond its share an ordinary user gets EPERM: use the largest capacity that is granted.
    for (std::size_t wanted = capacity_bytes; wanted > 4096; wanted /= 2) {
        if (made->writer.set_capacity(wanted).has_value()) break;
    }
    const auto granted = made->writer.capacity();
    if (not granted) return failure(granted.error());
    ENSURE(*granted != 0, "a capacity of 0 means that the pipe was moved from");
    return splice_pipe(std::move(*made), *granted);
}

void splice_pipe::discard() noexcept {
    transit_.discard();
}

result<std::uint64_t> send_file_to(io_handle& file, io_handle& to, const send_file_request& request,
                                   deadline within) noexcept {
    return run(sending(file, to, request, nullptr), file, to, "send a file", within);
}

result<std::uint64_t> send_file_to(io_handle& file, io_handle& to, const send_file_request& request,
                                   splice_pipe& through, deadline within) noexcept {
    return run(sending(file, to, request, &through.transit()), file, to, "send a file", within);
}

result<std::uint64_t> receive_file_from(io_handle& from, io_handle& file, const receive_file_request& request,
                                        deadline within) noexcept {
    return run(receiving(from, file, request, nullptr), from, file, "receive a file", within);
}

result<std::uint64_t> receive_file_from(io_handle& from, io_handle& file, const receive_file_request& request,
                                        splice_pipe& through, deadline within) noexcept {
    return run(receiving(from, file, request, &through.transit()), from, file, "receive a file", within);
}

result<std::uint64_t> splice_to(io_handle& from, io_handle& to, std::uint64_t length,
                                deadline within) noexcept {
    return run(splicing(from, to, length), from, to, "splice", within);
}

result<std::uint64_t> tee_to(pipe_handle& from, pipe_handle& to, std::uint64_t length,
                             deadline within) noexcept {
    return run(splicing(from, to, length, true), from, to, "tee", within);
}

splice_sender async_send_file(io_handle& file, io_handle& to, const send_file_request& request,
                              deadline within) noexcept {
    return {to, operation_kind::splice_out, sending(file, to, request, nullptr), within, "send a file"};
}

splice_sender async_send_file(io_handle& file, io_handle& to, const send_file_request& request,
                              splice_pipe& through, deadline within) noexcept {
    return {to, operation_kind::splice_out, sending(file, to, request, &through.transit()), within,
            "send a file"};
}

splice_sender async_receive_file(io_handle& from, io_handle& file, const receive_file_request& request,
                                 deadline within) noexcept {
    return {from, operation_kind::splice_in, receiving(from, file, request, nullptr), within,
            "receive a file"};
}

splice_sender async_receive_file(io_handle& from, io_handle& file, const receive_file_request& request,
                                 splice_pipe& through, deadline within) noexcept {
    return {from, operation_kind::splice_in, receiving(from, file, request, &through.transit()), within,
            "receive a file"};
}

splice_sender async_splice(io_handle& from, io_handle& to, std::uint64_t length, deadline within) noexcept {
    splice_transfer transfer = splicing(from, to, length);
    transfer.ends_when_dry = true;
    return {from, operation_kind::splice_in, transfer, within, "splice"};
}

splice_sender async_tee(pipe_handle& from, pipe_handle& to, std::uint64_t length, deadline within) noexcept {
    return {from, operation_kind::splice_in, splicing(from, to, length, true), within, "tee"};
}

}  // namespace sluice::io
