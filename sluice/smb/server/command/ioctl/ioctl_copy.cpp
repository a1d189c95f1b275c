// Copies that the server carries out, so that the data need not travel to the client and back.

#include <algorithm>

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/net/write_turn.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"
#include "sluice/vfs/node_data.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

constexpr std::size_t copy_response_bytes = 12;
constexpr std::uint64_t offset_max = INT64_MAX;

// Returns the open that a resume key names; null also if it belongs to another session.
[[nodiscard]] std::shared_ptr<open> find_source(const control& c, const wire::resume_key& key) noexcept {
    wire::file_id id{};
    static_assert(sizeof id <= sizeof key);
    std::memcpy(&id, key.data(), sizeof id);
    std::shared_ptr<open> found = c.r.host().opens.find(id);
    if (found == nullptr or not found->is_live() or not found->is_of(*c.r.session)) return nullptr;
    return found;
}

[[nodiscard]] nt_status check_ends(const control& c, const open& source) noexcept {
    const open& target = *c.file;
    if (target.is_directory() or source.is_pipe() or source.is_directory())
        return nt_status::invalid_device_request;
    if (not wire::has_any(target.access, access_mask::write_data | access_mask::append_data))
        return nt_status::access_denied;
    // The plain form promises that the copy can be read back ([MS-SMB2] 3.3.5.15.6).
    if (c.args.code == wire::control_code::srv_copychunk and not target.grants(access_mask::read_data))
        return nt_status::access_denied;
    return wire::has_any(source.access, access_mask::read_data | access_mask::execute)
               ? nt_status::success
               : nt_status::access_denied;
}

// Whether the request keeps within what we allow; otherwise the answer says how much that is.
[[nodiscard]] bool is_within(const wire::copy_chunk_limits& allowed, const wire::copy_chunk_request& asked) {
    std::uint64_t total = 0;
    for (const wire::copy_chunk& chunk : asked.chunks) {
        if (chunk.length == 0 or chunk.length > allowed.chunk_bytes_max) return false;
        total += chunk.length;
    }
    return total <= allowed.total_bytes_max;
}

[[nodiscard]] nt_status answer(control& c, const wire::copy_chunk_response& with, nt_status status) noexcept {
    byte_writer* const output = c.begin_output(copy_response_bytes);
    if (output == nullptr) return nt_status::insufficient_resources;
    encode(*output, with);
    return status;
}

[[nodiscard]] nt_status answer_with_limits(control& c, const wire::copy_chunk_limits& allowed) noexcept {
    return answer(c,
                  {.chunks_written = allowed.chunks_max,
                   .chunk_bytes_written = allowed.chunk_bytes_max,
                   .total_bytes_written = allowed.total_bytes_max},
                  nt_status::invalid_parameter);
}

[[nodiscard]] bool fits_offsets(const wire::copy_chunk& chunk) noexcept {
    return chunk.source_offset <= offset_max - chunk.length and
           chunk.target_offset <= offset_max - chunk.length;
}

// Whether the two opens may copy the chunk now.
[[nodiscard]] nt_status check_chunk(const open& source, const open& target,
                                    const wire::copy_chunk& chunk) noexcept {
    if (source.has_ended() or target.has_ended()) return nt_status::file_closed;
    const bool may_read =
        source.file->allows_read(source, {.offset = chunk.source_offset, .length = chunk.length});
    const bool may_write =
        target.file->allows_write(target, {.offset = chunk.target_offset, .length = chunk.length});
    return may_read and may_write ? nt_status::success : nt_status::file_lock_conflict;
}

// Whether the source has all of the chunk. Touches only the node.
[[nodiscard]] nt_status check_source(vfs::node& source, const wire::copy_chunk& chunk) noexcept {
    const auto status = asked_status(source);
    if (not status) return status.error();
    const bool has_it = chunk.source_offset <= status->size_bytes and
                        chunk.length <= status->size_bytes - chunk.source_offset;
    return has_it ? nt_status::success : nt_status::invalid_view_size;
}

// Through our memory: where the system cannot copy by itself, as within one
// file or between volumes.
[[nodiscard]] io::task<nt_status> carry(control& c, std::shared_ptr<open> source, wire::copy_chunk chunk) {
    pool_buffer data = c.r.answer.buffers().take(chunk.length);
    if (not data) co_return nt_status::insufficient_resources;
    const auto from = vfs::data_of(*source->node);
    const auto to = vfs::data_of(*c.file->node);
    if (not from or not to) co_return status_of(error(EBADF, "copy"));
    std::optional<change_turn> turn;
    if (not(*from)->transfers_at_once()) {
        const nt_status refused = co_await take_read_turn(turn, c.r, *source);
        if (refused != nt_status::success) co_return refused;
    }
    io::task<result<std::size_t>> reading = (*from)->co_read(data.bytes(), chunk.source_offset);
    const result<std::size_t> got = co_await within_work(std::move(reading));
    if (not got) co_return status_of(got.error());
    if (*got != chunk.length) co_return nt_status::invalid_view_size;  // truncated in between
    const pending_write before_its_end(c.r.host(), c.file);
    if (not before_its_end) co_return nt_status::file_closed;
    turn.reset();
    write_turn write(c.r, *c.file, **to);
    if (write.is_needed()) {
        io::task<nt_status> beginning = write.begin();
        const nt_status refused = co_await std::move(beginning);
        if (refused != nt_status::success) co_return refused;
    }
    io::task<result<void>> writing = (*to)->co_write(data.bytes(), chunk.target_offset);
    const result<void> written = co_await within_work(std::move(writing));
    if (write.restores()) {
        io::task<void> restoring = write.restore();
        co_await std::move(restoring);
    }
    co_return written ? nt_status::success : status_of(written.error());
}

// Has the file system copy. False: the server has to.
[[nodiscard]] io::task<bool> clone(control& c, std::shared_ptr<open> source,
                                   wire::copy_chunk chunk) noexcept {
    if (source->through != c.file->through or source->file == c.file->file) co_return false;
    if (&source->node->domain() != &c.file->node->domain()) co_return false;
    const pending_write before_its_end(c.r.host(), c.file, pending_write::shown::at_once);
    if (not before_its_end) co_return false;
    const nt_status cloned = co_await change_in_turn(c.r, *c.file, [&] {
        const auto from = vfs::data_of(*source->node);
        if (not from) return nt_status::not_supported;
        const result<std::uint64_t> bytes =
            (*from)->clone_to(*c.file->node, {.offset = chunk.source_offset, .length = chunk.length},
                              chunk.target_offset, false);
        return bytes and * bytes == chunk.length ? nt_status::success : nt_status::not_supported;
    });
    co_return cloned == nt_status::success;
}

}  // namespace

bool may_copy_from(const control& c, const open& source) noexcept {
    ENSURE(source.through != nullptr, "an open is one of a share");
    return c.r.encrypted_by != nullptr or source.through->configuration().encryption != protection::required;
}

io::task<nt_status> copy_range(control& c, std::shared_ptr<open> source, wire::copy_chunk chunk) {
    ENSURE(source != nullptr and not source->is_pipe(), "data are copied from a file");
    if (source->has_ended() or c.file->has_ended()) co_return nt_status::file_closed;
    if (not fits_offsets(chunk)) co_return nt_status::invalid_parameter;
    const nt_status there = co_await c.r.call(*source, [&] { return check_source(*source->node, chunk); });
    if (there != nt_status::success) co_return there;
    if (const nt_status refused = check_chunk(*source, *c.file, chunk); refused != nt_status::success)
        co_return refused;
    if (co_await clone(c, source, chunk)) co_return nt_status::success;
    if (const nt_status refused = check_chunk(*source, *c.file, chunk); refused != nt_status::success)
        co_return refused;
    io::task<nt_status> carrying = carry(c, source, chunk);
    co_return co_await std::move(carrying);
}

io::task<nt_status> request_resume_key(control& c) {
    constexpr std::size_t reply_bytes = 32;
    if (c.args.output_bytes_max < reply_bytes) co_return nt_status::invalid_parameter;
    byte_writer* const output = c.begin_output(reply_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    wire::resume_key key{};
    std::memcpy(key.data(), &c.file->id, sizeof c.file->id);
    wire::encode_resume_key(*output, key);
    co_return nt_status::success;
}

io::task<nt_status> copy_chunks(control& c) {
    if (c.args.output_bytes_max < copy_response_bytes) co_return nt_status::invalid_parameter;
    constexpr wire::copy_chunk_limits allowed;
    const auto asked = wire::decode_copy_chunk_request(c.args.input, allowed);
    if (not asked) {
        if (asked.error() == wire::decode_error::too_many) co_return answer_with_limits(c, allowed);
        co_return nt_status::invalid_parameter;
    }
    const std::shared_ptr<open> source = find_source(c, asked->source);
    if (source == nullptr) co_return nt_status::object_name_not_found;
    if (const nt_status refused = check_ends(c, *source); refused != nt_status::success) co_return refused;
    // With this status clients copy by READ and WRITE, and encrypt the READ.
    if (not may_copy_from(c, *source)) co_return nt_status::not_supported;
    if (not is_within(allowed, *asked)) co_return answer_with_limits(c, allowed);

    wire::copy_chunk_response done;
    for (const wire::copy_chunk& chunk : asked->chunks) {
        io::task<nt_status> copying = copy_range(c, source, chunk);
        const nt_status status = co_await std::move(copying);
        if (status != nt_status::success) co_return answer(c, done, status);
        ++done.chunks_written;
        done.total_bytes_written += chunk.length;
    }
    co_return answer(c, done, nt_status::success);
}

namespace {

// Returns whether both ranges are of one file and have bytes in common. Neither ends after
// offset_max.
[[nodiscard]] bool overlap(const open& source, const open& target,
                           const wire::duplicate_extents_request& asked) noexcept {
    return source.file == target.file and asked.source_offset < asked.target_offset + asked.byte_count and
           asked.target_offset < asked.source_offset + asked.byte_count;
}

// Shares blocks, if both files have them. Touches only the nodes.
[[nodiscard]] nt_status share_blocks(vfs::node& source, vfs::node& target,
                                     const wire::duplicate_extents_request& asked) noexcept {
    const auto from = asked_status(source);
    const auto to = asked_status(target);
    if (not from) return from.error();
    if (not to) return to.error();
    if (asked.source_offset + asked.byte_count > from->size_bytes or
        asked.target_offset + asked.byte_count > to->size_bytes or (from->is_sparse and not to->is_sparse))
        return nt_status::not_supported;
    const auto data = vfs::data_of(source);
    if (not data) return status_of(data.error());
    const result<std::uint64_t> shared = (*data)->clone_to(
        target, {.offset = asked.source_offset, .length = asked.byte_count}, asked.target_offset, true);
    return shared ? nt_status::success : status_of(shared.error());
}

[[nodiscard]] io::task<nt_status> share_extents(control& c, wire::duplicate_extents_request asked) noexcept {
    if (not c.r.files().volume().features().has_block_sharing) co_return nt_status::invalid_device_request;
    const std::shared_ptr<open> source = c.r.host().opens.find(asked.source);
    if (source == nullptr or not source->is_live() or not source->is_of(*c.r.session))
        co_return nt_status::invalid_handle;
    if (source->is_pipe() or source->is_directory() or c.file->is_directory())
        co_return nt_status::invalid_parameter;
    if (source->through != c.file->through) co_return nt_status::invalid_parameter;
    if (&source->node->domain() != &c.file->node->domain()) co_return nt_status::not_supported;
    if (not wire::has_any(source->access, access_mask::read_data | access_mask::execute) or
        not c.file->grants(access_mask::write_data))
        co_return nt_status::access_denied;
    if (asked.source_offset > offset_max - asked.byte_count or
        asked.target_offset > offset_max - asked.byte_count)
        co_return nt_status::invalid_parameter;
    if (asked.byte_count == 0) co_return nt_status::success;
    if (overlap(*source, *c.file, asked)) co_return nt_status::not_supported;  // [MS-FSCC] 2.3.8
    const bool may_read =
        source->file->allows_read(*source, {.offset = asked.source_offset, .length = asked.byte_count});
    const bool may_write =
        c.file->file->allows_write(*c.file, {.offset = asked.target_offset, .length = asked.byte_count});
    if (not may_read or not may_write) co_return nt_status::file_lock_conflict;
    const pending_write before_its_end(c.r.host(), c.file, pending_write::shown::at_once);
    if (not before_its_end) co_return nt_status::file_closed;
    co_return co_await change_in_turn(c.r, *c.file,
                                      [&] { return share_blocks(*source->node, *c.file->node, asked); });
}

}  // namespace

io::task<nt_status> duplicate_extents(control& c) {
    if (c.args.code == wire::control_code::duplicate_extents_to_file_ex) {
        const auto asked = wire::decode_duplicate_extents_ex_request(c.args.input);
        if (not asked) co_return nt_status::invalid_parameter;
        co_return co_await share_extents(c, asked->range);
    }
    const auto asked = wire::decode_duplicate_extents_request(c.args.input);
    if (not asked) co_return nt_status::invalid_parameter;
    co_return co_await share_extents(c, *asked);
}

}  // namespace sluice::smb::server
