// Holes, and other ranges of files.

#include <algorithm>
#include <vector>

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/wire/fsctl/fsctl_range.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

constexpr std::size_t range_bytes = 16;
// As many extents as one reply tells at most; a client goes on behind the last.
constexpr std::size_t ranges_max = 4096;

[[nodiscard]] nt_status check_writer(const open& of) noexcept {
    if (of.is_directory()) return nt_status::invalid_parameter;
    return of.grants(access_mask::write_data) ? nt_status::success : nt_status::access_denied;
}

// Makes a range read as zeros, as a write by this open would.
[[nodiscard]] nt_status zero(control& c, const wire::file_range& range, bool give_back) {
    open& of = *c.file;
    if (range.length == 0) return nt_status::success;
    if (not of.file->locks().allows_write(of, {.offset = range.offset, .length = range.length}))
        return nt_status::file_lock_conflict;
    const pending_write before_its_end(c.r.host(), c.file);
    const result<void> done = of.node->zero(range.offset, range.length, give_back);
    return done ? nt_status::success : status_of(done.error());
}

}  // namespace

io::task<nt_status> set_sparse(control& c) {
    constexpr access_mask any_of =
        access_mask::write_data | access_mask::append_data | access_mask::write_attributes;
    if (not wire::has_any(c.file->access, any_of)) co_return nt_status::access_denied;
    if (c.file->is_directory()) co_return nt_status::invalid_parameter;
    if (not c.file->tree->volume().features().has_sparse_files) co_return nt_status::invalid_device_request;
    const vfs::metadata_change wanted{.is_sparse = wire::decode_set_sparse(c.args.input)};
    const result<void> changed = c.file->node->change(wanted);
    co_return changed ? nt_status::success : status_of(changed.error());
}

io::task<nt_status> set_zero_data(control& c) {
    if (const nt_status refused = check_writer(*c.file); refused != nt_status::success) co_return refused;
    const auto range = wire::decode_set_zero_data(c.args.input);
    if (not range) co_return nt_status::invalid_parameter;
    const result<vfs::metadata> status = c.file->node->status();
    if (not status) co_return status_of(status.error());
    // Only a sparse file gives its blocks back ([MS-FSA] 2.1.5.10, FSCTL_SET_ZERO_DATA).
    co_return zero(c, *range, status->is_sparse);
}

io::task<nt_status> query_allocated_ranges(control& c) {
    if (c.file->is_directory()) co_return nt_status::invalid_parameter;
    if (not c.file->grants(access_mask::read_data)) co_return nt_status::access_denied;
    const auto asked = wire::decode_allocated_range(c.args.input);
    if (not asked) co_return nt_status::invalid_parameter;
    const result<vfs::metadata> status = c.file->node->status();
    if (not status) co_return status_of(status.error());
    const std::uint64_t end = std::min(asked->offset + asked->length, status->size_bytes);
    if (asked->offset >= end)
        co_return c.begin_output(0) != nullptr ? nt_status::success : nt_status::insufficient_resources;
    // A file that is not sparse counts as allocated throughout, whatever its file system does.
    const io::extent_pair whole{.offset = asked->offset, .length = end - asked->offset};
    std::vector<io::extent_pair> storage(status->is_sparse ? ranges_max : 1);
    storage[0] = whole;
    std::span<io::extent_pair> ranges = storage;
    if (status->is_sparse) {
        const auto listed = c.file->node->allocated_ranges(whole.offset, whole.length, storage);
        if (not listed) co_return status_of(listed.error());
        ranges = *listed;
    }
    const std::size_t room = c.args.output_bytes_max / range_bytes;
    if (room == 0 and not ranges.empty()) co_return nt_status::buffer_too_small;
    const std::size_t count = std::min(room, ranges.size());
    byte_writer* const output = c.begin_output(count * range_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    for (const io::extent_pair& one : ranges.first(count))
        wire::encode_allocated_range(*output, {.offset = one.offset, .length = one.length});
    const bool has_more = count != ranges.size() or (status->is_sparse and count == ranges_max);
    co_return has_more ? nt_status::buffer_overflow : nt_status::success;
}

// What is trimmed has no content any more; here it has zeros.
io::task<nt_status> trim_file(control& c) {
    constexpr std::size_t reply_bytes = 4;
    if (const nt_status refused = check_writer(*c.file); refused != nt_status::success) co_return refused;
    const auto ranges = wire::decode_file_level_trim(c.args.input);
    if (not ranges) co_return nt_status::invalid_parameter;
    std::uint32_t trimmed = 0;
    for (const wire::file_range& range : *ranges) {
        if (const nt_status status = zero(c, range, true); status != nt_status::success) co_return status;
        ++trimmed;
    }
    if (c.args.output_bytes_max < reply_bytes) co_return nt_status::success;
    byte_writer* const output = c.begin_output(reply_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    output->put(le32(trimmed));
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
