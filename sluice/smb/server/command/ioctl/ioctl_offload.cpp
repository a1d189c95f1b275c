// Copies by a token ([MS-FSA] 2.1.5.10.20 and 21): one request makes a token for a range, another
// writes it. Windows leaves such copies to the storage. Here, the data of a token are those of an
// open file: the file must have the same content when they are written, and the open must still be
// there.

#include <algorithm>

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

constexpr std::uint64_t sector_bytes = 512;
constexpr std::uint32_t chunk_bytes_max = wire::copy_chunk_limits{}.chunk_bytes_max;

// An end of a range: at a sector, or where all of it ends.
[[nodiscard]] bool is_end(std::uint64_t at, std::uint64_t end_of_all) noexcept {
    return at % sector_bytes == 0 or at == end_of_all;
}

// The lengths in replies are of whole sectors ([MS-FSCC] 2.3.42 and 2.3.44), also where the data
// end within one.
[[nodiscard]] std::uint64_t in_sectors(std::uint64_t length) noexcept {
    const std::uint64_t rest = length % sector_bytes;
    return rest == 0 ? length : length - rest + sector_bytes;
}

[[nodiscard]] std::uint64_t number_of(vfs::time_point when) noexcept {
    return static_cast<std::uint64_t>(when.time_since_epoch().count());
}

[[nodiscard]] clock_source::steady_time end_of_token(const request& r, std::uint32_t wanted_ms) noexcept {
    std::chrono::milliseconds lifetime = limits::offload_token_lifetime_default;
    if (wanted_ms != 0)
        lifetime = std::min<std::chrono::milliseconds>(std::chrono::milliseconds(wanted_ms),
                                                       limits::offload_token_lifetime_max);
    return r.host().clock().steady_now() + lifetime;
}

// Returns whether the file is as it was after that many changes. Asks in this order, because a
// change that ends in between counts then.
[[nodiscard]] bool is_unchanged(file_state& file, std::uint64_t changes) noexcept {
    return not file.is_changing() and file.ended_changes() == changes;
}

// The open that a token was made through: an open of the same user, which may still read the same
// content.
[[nodiscard]] io::task<std::shared_ptr<open>> find_source(control& c, offload_source from) {
    std::shared_ptr<open> one = c.r.host().opens.find(from.file);
    if (one == nullptr or not one->is_live() or one->is_pipe() or one->is_directory()) co_return nullptr;
    const client_reference& user = c.r.session->admitted.client;
    const bool is_users = one->is_of(*c.r.session) or (user.is_user() and one->counted.client() == user);
    if (not is_users or not wire::has_any(one->access, access_mask::read_data | access_mask::execute))
        co_return nullptr;
    if (not may_copy_from(c, *one)) co_return nullptr;
    if (not is_unchanged(*one->file, from.changes)) co_return nullptr;
    const auto status = co_await c.r.call(*one, [&] { return asked_status(*one->node); });
    const bool is_same = status and number_of(status->modified) == from.modified;
    co_return is_same ? std::move(one) : nullptr;
}

// Copies one part after the other. Within one file, ranges may overlap: then it begins at the end
// where no part is overwritten before it is copied. Returns how much was copied, in the order of
// the range.
struct progress {
    nt_status status = nt_status::success;
    std::uint64_t bytes = 0;
};
[[nodiscard]] io::task<progress> copy_parts(control& c, std::shared_ptr<open> source, std::uint64_t from,
                                            std::uint64_t to, std::uint64_t length) {
    const bool is_backward = source->file == c.file->file and to > from;
    std::uint64_t copied = 0;
    while (copied != length) {
        const std::uint64_t part = std::min<std::uint64_t>(length - copied, chunk_bytes_max);
        const std::uint64_t at = is_backward ? length - copied - part : copied;
        ENSURE(at + part <= length, "a part is within the range");
        const wire::copy_chunk chunk{
            .source_offset = from + at, .target_offset = to + at, .length = static_cast<std::uint32_t>(part)};
        io::task<nt_status> copying = copy_range(c, source, chunk);
        const nt_status status = co_await std::move(copying);
        if (status != nt_status::success)
            co_return progress{.status = status, .bytes = is_backward ? 0 : copied};
        copied += part;
    }
    co_return progress{.bytes = length};
}

[[nodiscard]] nt_status answer_written(control& c, std::uint64_t length) noexcept {
    byte_writer* const output = c.begin_output(wire::offload_write_reply::encoded_bytes);
    if (output == nullptr) return nt_status::insufficient_resources;
    encode(*output, wire::offload_write_reply{.length = length});
    return nt_status::success;
}

}  // namespace

io::task<nt_status> offload_read(control& c) {
    const auto asked = wire::decode_offload_read_request(c.args.input);
    if (not asked) co_return nt_status::invalid_parameter;
    if (c.args.output_bytes_max < wire::offload_read_reply::encoded_bytes)
        co_return nt_status::buffer_too_small;
    if (c.file->is_directory()) co_return nt_status::offload_read_file_not_supported;
    if (not wire::has_any(c.file->access, access_mask::read_data | access_mask::execute))
        co_return nt_status::access_denied;
    // Before the status: a write in between makes the token stand for nothing.
    const std::uint64_t changes = c.file->file->ended_changes();
    const auto status = co_await c.r.call(*c.file, [&] { return asked_status(*c.file->node); });
    if (not status) co_return status.error();
    const std::uint64_t size = status->size_bytes;
    if (asked->offset % sector_bytes != 0 or not is_end(asked->offset + asked->length, size))
        co_return nt_status::invalid_parameter;
    if (asked->offset >= size and asked->length != 0) co_return nt_status::end_of_file;
    if (not c.file->file->allows_read(*c.file, {.offset = asked->offset, .length = asked->length}))
        co_return nt_status::file_lock_conflict;
    std::uint64_t length = std::min(asked->length, limits::offload_token_data_bytes_max);
    if (length != 0) length = std::min(length, size - asked->offset);
    const wire::offload_token token =
        c.r.host().offload_tokens.make({.file = c.file->id,
                                        .offset = asked->offset,
                                        .length = length,
                                        .changes = changes,
                                        .modified = number_of(status->modified),
                                        .ends_at = end_of_token(c.r, asked->lifetime_ms)});
    byte_writer* const output = c.begin_output(wire::offload_read_reply::encoded_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    encode(*output, wire::offload_read_reply{.length = in_sectors(length), .token = token});
    co_return nt_status::success;
}

io::task<nt_status> offload_write(control& c) {
    const auto asked = wire::decode_offload_write_request(c.args.input);
    if (not asked) co_return nt_status::invalid_parameter;
    if (c.args.output_bytes_max < wire::offload_write_reply::encoded_bytes)
        co_return nt_status::buffer_too_small;
    if (c.file->is_directory()) co_return nt_status::offload_write_file_not_supported;
    if (not c.file->grants(access_mask::write_data)) co_return nt_status::access_denied;
    if (asked->offset % sector_bytes != 0 or asked->token_offset % sector_bytes != 0)
        co_return nt_status::invalid_parameter;
    if (asked->length == 0) co_return answer_written(c, 0);
    const auto from = c.r.host().offload_tokens.read(asked->token, c.r.host().clock().steady_now());
    if (not from) co_return nt_status::invalid_token;
    if (asked->token_offset >= from->length or not is_end(asked->token_offset + asked->length, from->length))
        co_return nt_status::invalid_parameter;
    io::task<std::shared_ptr<open>> finding = find_source(c, *from);
    const std::shared_ptr<open> source = co_await std::move(finding);
    if (c.r.interrupted()) co_return *c.r.interrupted();
    if (source == nullptr) co_return nt_status::invalid_token;
    const auto target = co_await c.r.call(*c.file, [&] { return asked_status(*c.file->node); });
    if (not target) co_return target.error();
    if (asked->offset > target->size_bytes) co_return nt_status::end_of_file;
    const std::uint64_t length = std::min(asked->length, from->length - asked->token_offset);
    io::task<progress> copying =
        copy_parts(c, source, from->offset + asked->token_offset, asked->offset, length);
    const progress done = co_await std::move(copying);
    if (done.status != nt_status::success and done.bytes == 0) co_return done.status;
    // The copy may be a mixture of before and after.
    if (source->file != c.file->file and not is_unchanged(*source->file, from->changes))
        co_return nt_status::invalid_token;
    co_return answer_written(c, std::min(asked->length, in_sectors(done.bytes)));
}

}  // namespace sluice::smb::server
