#pragma once

#include <cstdint>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

// Holes, and other ranges of files. encode() and decode() as in fscc_file_metadata.hpp.

namespace sluice::smb::wire {

/// Bytes [offset, offset + length) of a file. Decoders check that neither number, nor their sum, is
/// above 2^63 - 1 (`bad_value`).
struct file_range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    [[nodiscard]] friend bool operator==(const file_range&, const file_range&) noexcept = default;
};

/// Decodes FILE_SET_SPARSE_BUFFER, [MS-FSCC] 2.3. An empty buffer means "sparse".
[[nodiscard]] bool decode_set_sparse(bytes_view bytes) noexcept;
void encode_set_sparse(byte_writer& writer, bool sparse) noexcept;

/// Encodes FILE_ZERO_DATA_INFORMATION, [MS-FSCC] 2.3. The wire format has the end instead of the
/// length.
void encode_set_zero_data(byte_writer& writer, const file_range& range) noexcept;
/// Errors: `truncated`, `bad_value`, also for an end before the beginning.
[[nodiscard]] decoded<file_range> decode_set_zero_data(bytes_view bytes) noexcept;

/// Encodes FILE_ALLOCATED_RANGE_BUFFER, [MS-FSCC] 2.3: one in the request, any number in the reply.
/// The writer's position shows the caller how many fitted.
void encode_allocated_range(byte_writer& writer, const file_range& range) noexcept;
/// Errors: `truncated`, `bad_value`.
[[nodiscard]] decoded<file_range> decode_allocated_range(bytes_view bytes) noexcept;
/// Decodes a complete reply. Errors: `truncated` if it ends within a range, `bad_value`. Allocates:
/// the ranges.
[[nodiscard]] decoded<std::vector<file_range>> decode_allocated_ranges(bytes_view bytes) noexcept;

/// FILE_LEVEL_TRIM, [MS-FSCC] 2.3. The key of its format is for clients on the same host.
inline constexpr std::size_t trim_ranges_max = 1024;
void encode_file_level_trim(byte_writer& writer, const std::vector<file_range>& ranges) noexcept;
/// Errors: `truncated`, `bad_value`, also for a key that is not 0, `too_many` above
/// trim_ranges_max. Allocates: the ranges.
[[nodiscard]] decoded<std::vector<file_range>> decode_file_level_trim(bytes_view bytes) noexcept;

/// FILE_REGION_INPUT, [MS-FSCC] 2.3. Without a buffer, the request is for the whole file.
struct file_region_request {
    static constexpr std::uint32_t valid_cached_data = 0x01;

    file_range range{};
    std::uint32_t usage = valid_cached_data;
    [[nodiscard]] friend bool operator==(const file_region_request&,
                                         const file_region_request&) noexcept = default;
};
void encode(byte_writer& writer, const file_region_request& request) noexcept;
/// Errors: `truncated`, `bad_value` for a range as above.
[[nodiscard]] decoded<file_region_request> decode_file_region_request(bytes_view bytes) noexcept;
/// Returns the length of a reply with that number of regions.
[[nodiscard]] constexpr std::size_t file_regions_bytes(std::size_t regions) noexcept {
    return 16 + 24 * regions;
}
/// Encodes FILE_REGION_OUTPUT, [MS-FSCC] 2.3, with all `regions`. `total`: the number of regions of
/// the file.
void encode_file_regions(byte_writer& writer, const std::vector<file_region_request>& regions,
                         std::uint32_t total) noexcept;
/// Decodes the regions of a reply. Errors: `truncated`, `bad_value`. Allocates: the regions.
[[nodiscard]] decoded<std::vector<file_region_request>> decode_file_regions(bytes_view bytes) noexcept;

}  // namespace sluice::smb::wire
