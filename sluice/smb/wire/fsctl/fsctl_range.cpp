#include "sluice/smb/wire/fsctl/fsctl_range.hpp"

#include <limits>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint64_t position_max = std::numeric_limits<std::int64_t>::max();

struct range_wire {
    le64 first;   // 0
    le64 second;  // 8  a length, or an end
};
static_assert(sizeof(range_wire) == 16);

// clang-format off
struct trim_head_wire {
    le32 key;    // 0
    le32 count;  // 4
};
static_assert(sizeof(trim_head_wire) == 8);

struct region_request_wire {
    range_wire range;  //  0
    le32 usage;        // 16
    le32 reserved;     // 20
};
static_assert(sizeof(region_request_wire) == file_regions_bytes(1) - file_regions_bytes(0));

struct regions_head_wire {
    le32 flags;     //  0
    le32 total;     //  4
    le32 count;     //  8
    le32 reserved;  // 12
};
static_assert(sizeof(regions_head_wire) == file_regions_bytes(0));
// clang-format on

decoded<file_range> checked(const range_wire& wire) noexcept {
    const std::uint64_t offset = wire.first.value();
    const std::uint64_t length = wire.second.value();
    if (offset > position_max or length > position_max - offset)
        return std::unexpected(decode_error::bad_value);
    return file_range{.offset = offset, .length = length};
}

range_wire wire_of(const file_range& range) noexcept {
    return {.first = le64(range.offset), .second = le64(range.length)};
}

decoded<file_range> take_range(byte_reader& reader) noexcept {
    const auto wire = reader.take<range_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    return checked(*wire);
}

}  // namespace

bool decode_set_sparse(bytes_view bytes) noexcept {
    const auto flag = bytes.take<le8>();
    return !flag or flag->value() != 0;
}

void encode_set_sparse(byte_writer& writer, bool sparse) noexcept {
    writer.put(le8(sparse));
}

void encode_set_zero_data(byte_writer& writer, const file_range& range) noexcept {
    writer.put(range_wire{.first = le64(range.offset), .second = le64(range.offset + range.length)});
}

decoded<file_range> decode_set_zero_data(bytes_view bytes) noexcept {
    const auto wire = bytes.take<range_wire>();
    if (!wire) return std::unexpected(decode_error::truncated);
    const std::uint64_t begin = wire->first.value();
    const std::uint64_t end = wire->second.value();
    if (end > position_max or begin > end) return std::unexpected(decode_error::bad_value);
    return file_range{.offset = begin, .length = end - begin};
}

void encode_allocated_range(byte_writer& writer, const file_range& range) noexcept {
    writer.put(wire_of(range));
}

decoded<file_range> decode_allocated_range(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    return take_range(reader);
}

decoded<std::vector<file_range>> decode_allocated_ranges(bytes_view bytes) noexcept {
    std::vector<file_range> ranges;
    byte_reader reader(bytes);
    while (reader.remaining() != 0) {
        const auto range = take_range(reader);
        if (!range) return std::unexpected(range.error());
        ranges.push_back(*range);
    }
    return ranges;
}

void encode_file_level_trim(byte_writer& writer, const std::vector<file_range>& ranges) noexcept {
    writer.put(trim_head_wire{.key = {}, .count = le32(static_cast<std::uint32_t>(ranges.size()))});
    for (const file_range& range : ranges)
        writer.put(wire_of(range));
}

decoded<std::vector<file_range>> decode_file_level_trim(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto head = reader.take<trim_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    if (head->key.value() != 0) return std::unexpected(decode_error::bad_value);
    if (head->count.value() > trim_ranges_max) return std::unexpected(decode_error::too_many);
    std::vector<file_range> ranges;
    for (std::uint32_t left = head->count.value(); left != 0; --left) {
        const auto range = take_range(reader);
        if (!range) return std::unexpected(range.error());
        ranges.push_back(*range);
    }
    return ranges;
}

void encode(byte_writer& writer, const file_region_request& request) noexcept {
    writer.put(
        region_request_wire{.range = wire_of(request.range), .usage = le32(request.usage), .reserved = {}});
}

decoded<file_region_request> decode_file_region_request(bytes_view bytes) noexcept {
    if (bytes.empty()) return file_region_request{.range = {.offset = 0, .length = position_max}};
    byte_reader reader(bytes);
    const auto range = take_range(reader);
    if (!range) return std::unexpected(range.error());
    // A request may end here, without the reserved field of a reply.
    const auto usage = reader.take<le32>();
    if (!usage) return std::unexpected(decode_error::truncated);
    return file_region_request{.range = *range, .usage = usage->value()};
}

void encode_file_regions(byte_writer& writer, const std::vector<file_region_request>& regions,
                         std::uint32_t total) noexcept {
    writer.put(regions_head_wire{.flags = {},
                                 .total = le32(total),
                                 .count = le32(static_cast<std::uint32_t>(regions.size())),
                                 .reserved = {}});
    for (const file_region_request& region : regions)
        encode(writer, region);
}

decoded<std::vector<file_region_request>> decode_file_regions(bytes_view bytes) noexcept {
    byte_reader reader(bytes);
    const auto head = reader.take<regions_head_wire>();
    if (!head) return std::unexpected(decode_error::truncated);
    std::vector<file_region_request> regions;
    for (std::uint32_t left = head->count.value(); left != 0; --left) {
        const auto each = reader.take_bytes(sizeof(region_request_wire));
        if (!each) return std::unexpected(decode_error::truncated);
        const auto region = decode_file_region_request(*each);
        if (!region) return std::unexpected(region.error());
        regions.push_back(*region);
    }
    return regions;
}

}  // namespace sluice::smb::wire
