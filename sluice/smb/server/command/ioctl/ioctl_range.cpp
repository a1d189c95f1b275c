// Holes, and other ranges of files.

#include <algorithm>
#include <vector>

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/wire/fsctl/fsctl_range.hpp"
#include "sluice/vfs/node_data.hpp"

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
[[nodiscard]] io::task<nt_status> zero(control& c, wire::file_range range, bool release) noexcept {
    open& of = *c.file;
    if (range.length == 0) co_return nt_status::success;
    if (not of.file->allows_write(of, {.offset = range.offset, .length = range.length}))
        co_return nt_status::file_lock_conflict;
    const pending_write before_its_end(c.r.host(), c.file, pending_write::shown::at_once);
    if (not before_its_end) co_return nt_status::file_closed;
    co_return co_await change_in_turn(c.r, of, [&] {
        const auto data = vfs::data_of(*of.node);
        if (not data) return status_of(data.error());
        const result<void> done = (*data)->zero(range.offset, range.length, release);
        return done ? nt_status::success : status_of(done.error());
    });
}

// The allocated ranges of a file, as many as `room` of them, and whether there are more.
struct range_list {
    std::vector<io::extent_pair> ranges;
    bool has_more = false;
};

[[nodiscard]] std::expected<range_list, nt_status> list_ranges(vfs::node& node,
                                                               const wire::file_range& within) {
    const auto status = asked_status(node);
    if (not status) return std::unexpected(status.error());
    const std::uint64_t end = std::min(within.offset + within.length, status->size_bytes);
    if (within.offset >= end) return range_list{};
    // A file that is not sparse counts as allocated throughout, whatever its file system does.
    const io::extent_pair whole{.offset = within.offset, .length = end - within.offset};
    if (not status->is_sparse) return range_list{.ranges = {whole}};
    range_list found{.ranges = std::vector<io::extent_pair>(ranges_max)};
    const auto data = vfs::data_of(node);
    if (not data) return std::unexpected(status_of(data.error()));
    const auto listed = (*data)->allocated_ranges(whole.offset, whole.length, found.ranges);
    if (not listed) return std::unexpected(status_of(listed.error()));
    found.ranges.resize(listed->size());
    found.has_more = found.ranges.size() == ranges_max;
    return found;
}

}  // namespace

io::task<nt_status> set_sparse(control& c) {
    constexpr access_mask any_of =
        access_mask::write_data | access_mask::append_data | access_mask::write_attributes;
    if (not wire::has_any(c.file->access, any_of)) co_return nt_status::access_denied;
    if (c.file->is_directory()) co_return nt_status::invalid_parameter;
    if (not c.r.files().volume().features().has_sparse_files) co_return nt_status::invalid_device_request;
    const vfs::metadata_change wanted{.is_sparse = wire::decode_set_sparse(c.args.input)};
    co_return co_await change_in_turn(c.r, *c.file, [&] {
        const result<void> changed = c.file->node->change(wanted);
        return changed ? nt_status::success : status_of(changed.error());
    });
}

io::task<nt_status> set_zero_data(control& c) {
    if (const nt_status refused = check_writer(*c.file); refused != nt_status::success) co_return refused;
    const auto range = wire::decode_set_zero_data(c.args.input);
    if (not range) co_return nt_status::invalid_parameter;
    const auto status = co_await c.r.call(*c.file, [&] { return asked_status(*c.file->node); });
    if (not status) co_return status.error();
    // Only a sparse file gives its blocks back ([MS-FSA] 2.1.5.10, FSCTL_SET_ZERO_DATA).
    co_return co_await zero(c, *range, status->is_sparse);
}

io::task<nt_status> query_allocated_ranges(control& c) {
    if (c.file->is_directory()) co_return nt_status::invalid_parameter;
    if (not c.file->grants(access_mask::read_data)) co_return nt_status::access_denied;
    const auto asked = wire::decode_allocated_range(c.args.input);
    if (not asked) co_return nt_status::invalid_parameter;
    const auto found = co_await c.r.call(*c.file, [&] { return list_ranges(*c.file->node, *asked); });
    if (not found) co_return found.error();
    const std::span<const io::extent_pair> ranges = found->ranges;
    const std::size_t room = c.args.output_bytes_max / range_bytes;
    if (room == 0 and not ranges.empty()) co_return nt_status::buffer_too_small;
    const std::size_t count = std::min(room, ranges.size());
    byte_writer* const output = c.begin_output(count * range_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    for (const io::extent_pair& one : ranges.first(count))
        wire::encode_allocated_range(*output, {.offset = one.offset, .length = one.length});
    co_return count != ranges.size() or found->has_more ? nt_status::buffer_overflow : nt_status::success;
}

// The valid data of a file ends where the file does, so that it has one region at most.
io::task<nt_status> query_file_regions(control& c) {
    if (c.file->node->kind() != vfs::node_kind::file) co_return nt_status::invalid_parameter;
    const auto asked = wire::decode_file_region_request(c.args.input);
    if (not asked)
        co_return asked.error() == wire::decode_error::truncated ? nt_status::buffer_too_small
                                                                 : nt_status::invalid_parameter;
    if (asked->usage != wire::file_region_request::valid_cached_data) co_return nt_status::invalid_parameter;
    if (c.args.output_bytes_max < wire::file_regions_bytes(1)) co_return nt_status::buffer_too_small;
    const auto status = co_await c.r.call(*c.file, [&] { return asked_status(*c.file->node); });
    if (not status) co_return status.error();
    std::vector<wire::file_region_request> regions;
    const wire::file_range& range = asked->range;
    if (range.length != 0 and range.offset < status->size_bytes) {
        wire::file_region_request valid = *asked;
        valid.range.length = std::min(range.length, status->size_bytes - range.offset);
        ENSURE(valid.range.length != 0, "a region is not empty");
        regions.push_back(valid);
    }
    byte_writer* const output = c.begin_output(wire::file_regions_bytes(regions.size()));
    if (output == nullptr) co_return nt_status::insufficient_resources;
    wire::encode_file_regions(*output, regions, static_cast<std::uint32_t>(regions.size()));
    co_return nt_status::success;
}

// A trimmed range has undefined content; here it is zeros.
io::task<nt_status> trim_file(control& c) {
    constexpr std::size_t reply_bytes = 4;
    if (const nt_status refused = check_writer(*c.file); refused != nt_status::success) co_return refused;
    const auto ranges = wire::decode_file_level_trim(c.args.input);
    if (not ranges) co_return nt_status::invalid_parameter;
    std::uint32_t trimmed = 0;
    for (const wire::file_range& range : *ranges) {
        const nt_status status = co_await zero(c, range, true);
        if (status != nt_status::success) co_return status;
        ++trimmed;
    }
    if (c.args.output_bytes_max < reply_bytes) co_return nt_status::success;
    byte_writer* const output = c.begin_output(reply_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    output->put(le32(trimmed));
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
