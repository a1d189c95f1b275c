#include "sluice/smb/wire/read.hpp"

#include "sluice/smb/server/command.hpp"
#include "sluice/smb/server/connection.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/status_of_error.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

[[nodiscard]] nt_status check(const request& r, const wire::read_args& args) noexcept {
    if (args.channel != wire::io_channel::none) return nt_status::invalid_parameter;
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    if (args.length_bytes > bytes_max or not r.affords(args.length_bytes))
        return nt_status::invalid_parameter;
    constexpr std::uint64_t offset_max = INT64_MAX;
    if (args.offset_bytes > offset_max or args.length_bytes > offset_max - args.offset_bytes)
        return nt_status::invalid_parameter;
    return nt_status::success;
}

[[nodiscard]] nt_status reply_with(request& r, pool_buffer data, std::size_t bytes) noexcept {
    byte_writer* const body = r.begin_reply(wire::read_reply_data_offset);
    if (body == nullptr) return nt_status::insufficient_resources;
    wire::encode_read_reply_head(*body, bytes);
    r.connection().counters.has_read(bytes);
    data.shrink(bytes);
    if (bytes != 0) r.answer.attach(std::move(data));
    return nt_status::success;
}

// A client may ask for the answer before it has sent the request.
[[nodiscard]] io::task<nt_status> read_pipe(request& r, std::shared_ptr<open> from, std::uint32_t bytes_max) {
    while (not from->pipe->has_answer()) {
        event<nt_status> answered(r.loop());
        from->pipe->wait(answered);
        io::task<nt_status> waiting = r.pend(answered);
        const nt_status outcome = co_await std::move(waiting);
        from->pipe->forget(answered);
        if (outcome != nt_status::success) co_return outcome;
    }
    pool_buffer data = r.answer.buffers().take(bytes_max);
    if (not data) co_return nt_status::insufficient_resources;
    const named_pipe::read_outcome got = from->pipe->read(data.bytes());
    const nt_status status = reply_with(r, std::move(data), got.bytes);
    if (status != nt_status::success) co_return status;
    co_return got.more ? nt_status::buffer_overflow : nt_status::success;
}

}  // namespace

io::task<nt_status> serve_read(request& r) {
    const auto args = wire::decode_read(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const nt_status refused = check(r, *args); refused != nt_status::success) co_return refused;
    // Held across the suspension below: a CLOSE may run while the disk works.
    const std::shared_ptr<open> from = r.find_open(args->file);
    if (from == nullptr) co_return nt_status::file_closed;
    if (from->is_pipe()) {
        io::task<nt_status> reading = read_pipe(r, from, args->length_bytes);
        co_return co_await std::move(reading);
    }
    if (from->is_directory()) co_return nt_status::invalid_device_request;
    if (not wire::has_any(from->access, access_mask::read_data | access_mask::execute))
        co_return nt_status::access_denied;
    if (not from->file->locks().allows_read(*from,
                                            {.offset = args->offset_bytes, .length = args->length_bytes}))
        co_return nt_status::file_lock_conflict;

    pool_buffer data = r.answer.buffers().take(args->length_bytes);
    if (not data) co_return nt_status::insufficient_resources;
    io::task<result<std::size_t>> reading = from->node->co_read(data.bytes(), args->offset_bytes);
    const result<std::size_t> got = co_await r.host().transfer(*from->node, std::move(reading));
    if (not got) co_return status_of(got.error());
    const bool nothing_left = *got == 0 and args->length_bytes != 0;
    if (nothing_left or *got < args->minimum_bytes) co_return nt_status::end_of_file;
    from->position = args->offset_bytes + *got;
    co_return reply_with(r, std::move(data), *got);
}

}  // namespace sluice::smb::server
