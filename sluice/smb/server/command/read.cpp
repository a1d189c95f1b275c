#include "sluice/smb/wire/file/read.hpp"

#include "sluice/io/file/page_cache.hpp"
#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/pipe_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/vfs/node_data.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

[[nodiscard]] nt_status check(const request& r, const wire::read_args& args) noexcept {
    if (args.channel != wire::io_channel::none) return nt_status::invalid_parameter;
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    if (args.length_bytes > bytes_max or not r.charge_covers(args.length_bytes))
        return nt_status::invalid_parameter;
    constexpr std::uint64_t offset_max = INT64_MAX;
    if (args.offset_bytes > offset_max or args.length_bytes > offset_max - args.offset_bytes)
        return nt_status::invalid_parameter;
    return nt_status::success;
}

[[nodiscard]] nt_status reply_with(request& r, reply_payload data) noexcept {
    byte_writer* const body = r.begin_reply(wire::read_reply_data_offset);
    if (body == nullptr) return nt_status::insufficient_resources;
    wire::encode_read_reply_head(*body, data.size());
    r.connection().counters.has_read(data.size());
    if (data.size() != 0) r.answer.attach(std::move(data));
    return nt_status::success;
}

// A client may ask for the answer before it has sent the request, unless other messages follow:
// such a READ fails if no request before it has an answer.
[[nodiscard]] io::task<nt_status> read_pipe(request& r, std::shared_ptr<open> from, std::uint32_t bytes_max) {
    if (not r.is_last_of_frame and not from->pipe->has_answer()) {
        io::task<nt_status> earlier = finish_earlier(r, *from->pipe);
        const nt_status refused = co_await std::move(earlier);
        if (refused != nt_status::success) co_return refused;
    }
    for (;;) {
        while (not from->pipe->has_answer()) {
            one_shot_event<nt_status> answered(r.loop());
            from->pipe->wait(answered);
            io::task<nt_status> waiting = r.pend(answered);
            const nt_status outcome = co_await std::move(waiting);
            from->pipe->forget(answered);
            if (outcome != nt_status::success) co_return outcome;
        }
        pool_buffer data = r.answer.buffers().take(bytes_max);
        if (not data) co_return nt_status::insufficient_resources;
        const named_pipe::read_outcome got = from->pipe->read(data.bytes());
        // A request on another loop may have taken the answer.
        if (got.bytes == 0 and not got.more) continue;
        data.shrink(got.bytes);
        const nt_status status = reply_with(r, std::move(data));
        if (status != nt_status::success) co_return status;
        co_return got.more ? nt_status::buffer_overflow : nt_status::success;
    }
}

// Checks the conditions that may change while a request waits.
[[nodiscard]] nt_status may_read(open& from, const wire::read_args& args) noexcept {
    if (from.has_ended()) return nt_status::file_closed;
    const bool is_free =
        from.file->allows_read(from, {.offset = args.offset_bytes, .length = args.length_bytes});
    return is_free ? nt_status::success : nt_status::file_lock_conflict;
}

// Returns whether the client wants compressed data, and earlier data of the file have shrunk
// ([MS-SMB2] 3.3.5.12).
[[nodiscard]] bool is_compressed(const request& r, open& from, const wire::read_args& args) noexcept {
    return wire::has(args.flags, wire::read_flags::request_compressed) and
           r.connection().agreed.compression.can_compress() and
           args.length_bytes >= limits::compressed_read_bytes_min and
           args.length_bytes <= limits::compressed_read_bytes_max and from.takes_compression();
}

[[nodiscard]] read_path choose_path(const request& r, open& from, vfs::node_data& data, std::size_t bytes,
                                    bool is_compressed) noexcept {
    return path_of({.is_signed = r.is_reply_signed(),
                    .is_encrypted = r.encrypted_by != nullptr,
                    .is_compounded = not r.is_last_of_frame or not r.replies_before->empty(),
                    .is_compressed = is_compressed,
                    // Where calls may hang, the loop asks nothing of the file.
                    .has_host_file = from.node->domain().is_inline() and data.pins_extents(),
                    .bytes = bytes});
}

// Returns the part of a range that can be sent from the kernel's page cache of the host's file: as
// much of it as the file has now, which is the length in the reply. Returns an empty payload if
// that is little, or in many runs, each of which is a transfer of its own, or not completely
// cached: the loop must not wait for a disk.
[[nodiscard]] reply_payload cached_part(open& from, vfs::node_data& data, const wire::read_args& args) {
    const io::extent_pair range{.offset = args.offset_bytes, .length = args.length_bytes};
    auto pinned = data.pin_extents(range, args.length_bytes / spliced_bytes_min);
    if (not pinned or pinned->file == nullptr) return {};
    std::uint64_t length = 0;
    for (const vfs::host_run& run : pinned->runs) {
        if (run.place and not io::is_cached(*pinned->file, {.offset = *run.place, .length = run.length}))
            return {};
        length += run.length;
    }
    if (length < spliced_bytes_min or length < args.minimum_bytes) return {};
    std::shared_ptr<io::file_handle> pages = from.pages(*pinned->file);
    if (pages == nullptr) return {};
    return reply_payload::file_pieces{
        .file = std::move(pages), .kept = std::move(pinned->kept), .runs = std::move(pinned->runs)};
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
    if (const nt_status refused = may_read(*from, *args); refused != nt_status::success) co_return refused;

    const auto file = vfs::data_of(*from->node);
    if (not file) co_return status_of(file.error());
    const bool compresses = is_compressed(r, *from, *args);
    read_path path = choose_path(r, *from, **file, args->length_bytes, compresses);
    if (path == read_path::spliced) {
        reply_payload pages = cached_part(*from, **file, *args);
        if (pages) {
            from->position.store(args->offset_bytes + pages.size(), std::memory_order_relaxed);
            r.connection().data().counted.add(path, pages.size());
            co_return reply_with(r, std::move(pages));
        }
        path = read_path::copied;
    }
    if (args->length_bytes >= spliced_bytes_min) {
        io::task<void> waiting = r.connection().room_to_send();
        co_await within_work(std::move(waiting));
        if (const nt_status refused = may_read(*from, *args); refused != nt_status::success)
            co_return refused;
    }
    pool_buffer data = r.answer.buffers().take(args->length_bytes);
    if (not data) co_return nt_status::insufficient_resources;
    std::optional<change_turn> turn;
    if (not(*file)->transfers_at_once()) {
        const nt_status refused = co_await take_read_turn(turn, r, *from);
        if (refused != nt_status::success) co_return refused;
    }
    io::task<result<std::size_t>> reading = (*file)->co_read(data.bytes(), args->offset_bytes);
    const result<std::size_t> got = co_await within_work(std::move(reading));
    if (not got) co_return status_of(got.error());
    const bool nothing_left = *got == 0 and args->length_bytes != 0;
    if (nothing_left or *got < args->minimum_bytes) co_return nt_status::end_of_file;
    from->position.store(args->offset_bytes + *got, std::memory_order_relaxed);
    r.connection().data().counted.add(path, *got);
    data.shrink(*got);
    if (compresses and *got >= limits::compressed_read_bytes_min) r.compressed_for = from;
    co_return reply_with(r, std::move(data));
}

}  // namespace sluice::smb::server
