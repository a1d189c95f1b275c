#include "sluice/smb/wire/file/write.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/pipe_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/net/write_turn.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/vfs/node_data.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

// An open with only the right to append may write behind the end, wherever that is.
constexpr std::uint64_t at_end_of_file = ~std::uint64_t{0};

[[nodiscard]] nt_status check(const request& r, const wire::write_args& args) noexcept {
    if (args.channel != wire::io_channel::none) return nt_status::invalid_parameter;
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    if (args.data.size() > bytes_max or not r.charge_covers(args.data.size()))
        return nt_status::invalid_parameter;
    constexpr std::uint64_t offset_max = INT64_MAX;
    if (args.offset_bytes == at_end_of_file) return nt_status::success;
    if (args.offset_bytes > offset_max or args.data.size() > offset_max - args.offset_bytes)
        return nt_status::invalid_parameter;
    return nt_status::success;
}

[[nodiscard]] nt_status reply_with(request& r, std::size_t bytes) noexcept {
    byte_writer* const body = r.begin_reply(16);
    if (body == nullptr) return nt_status::insufficient_resources;
    r.connection().counters.has_written(bytes);
    encode(*body, wire::write_reply{.count_bytes = static_cast<std::uint32_t>(bytes)});
    return nt_status::success;
}

[[nodiscard]] io::task<nt_status> write_to_pipe(request& r, std::shared_ptr<open> to, bytes_view data) {
    pipe_turn turn(r, *to->pipe);
    io::task<nt_status> taking = turn.take();
    const nt_status refused = co_await std::move(taking);
    if (refused != nt_status::success) co_return refused;
    if (to->has_ended()) co_return nt_status::file_closed;
    const bool is_taken = to->pipe->write(data);
    io::task<void> finishing = turn.finish();
    co_await std::move(finishing);
    co_return is_taken ? reply_with(r, data.size()) : nt_status::pipe_broken;
}

}  // namespace

io::task<nt_status> serve_write(request& r) {
    const auto args = wire::decode_write(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    if (const nt_status refused = check(r, *args); refused != nt_status::success) co_return refused;
    const std::shared_ptr<open> to = r.find_open(args->file);
    if (to == nullptr) co_return nt_status::file_closed;
    if (to->is_pipe()) {
        io::task<nt_status> writing = write_to_pipe(r, to, args->data);
        co_return co_await std::move(writing);
    }
    if (to->is_directory()) co_return nt_status::invalid_device_request;
    if (not wire::has_any(to->access, access_mask::write_data | access_mask::append_data))
        co_return nt_status::access_denied;
    if (to->is_past()) co_return nt_status::media_write_protected;
    std::uint64_t offset = args->offset_bytes;
    if (offset == at_end_of_file) {
        // Windows reserves this for clients that may only append; a client that may write names the
        // offset.
        if (wire::has(to->access, access_mask::write_data)) co_return nt_status::invalid_parameter;
        const auto status = co_await r.call(*to, [&] { return asked_status(*to->node); });
        if (not status) co_return status.error();
        if (to->has_ended()) co_return nt_status::file_closed;
        offset = status->size_bytes;
    }
    if (not to->file->allows_write(*to, {.offset = offset, .length = args->data.size()}))
        co_return nt_status::file_lock_conflict;
    if (args->data.empty()) co_return reply_with(r, 0);

    const auto file = vfs::data_of(*to->node);
    if (not file) co_return status_of(file.error());
    const pending_write before_its_end(r.host(), to);
    if (not before_its_end) co_return nt_status::file_closed;
    write_turn turn(r, *to, **file);
    if (turn.is_needed()) {
        io::task<nt_status> beginning = turn.begin();
        const nt_status refused = co_await std::move(beginning);
        if (refused != nt_status::success) co_return refused;
    }
    io::task<result<void>> writing = (*file)->co_write(args->data.span(), offset);
    const result<void> written = co_await within_work(std::move(writing));
    if (turn.restores()) {
        io::task<void> restoring = turn.restore();
        co_await std::move(restoring);
    }
    turn.release();
    if (not written) co_return status_of(written.error());
    const bool is_through = wire::has(args->flags, wire::write_flags::write_through) or
                            wire::has(to->create_options, wire::create_options::write_through);
    if (is_through) {
        io::task<result<void>> flushing = to->node->co_flush();
        const result<void> flushed = co_await within_work(std::move(flushing));
        if (not flushed) co_return status_of(flushed.error());
    }
    co_return reply_with(r, args->data.size());
}

}  // namespace sluice::smb::server
