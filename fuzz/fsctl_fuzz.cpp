// Every decoder of FSCTL payloads. The first byte selects one, the rest is its input. Everything
// that a decoder accepts must be equal after encoding and decoding.

#include <cstdint>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"
#include "sluice/smb/wire/fsctl/fsctl_dfs.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"
#include "sluice/smb/wire/fsctl/fsctl_range.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"
#include "sluice/smb/wire/fsctl/fsctl_volume.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

template <class Decode, class Encode>
void round_trip(bytes_view input, Decode&& decode, Encode&& write) {
    const auto payload = decode(input);
    if (!payload) return;
    // Names may share bytes in the input; encoded, each has its own bytes.
    std::vector<std::byte> room(2 * input.size() + 64);
    byte_writer writer{mutable_bytes(room)};
    write(writer, *payload);
    const auto bytes = writer.finish();
    ENSURE(bytes.has_value());
    const auto again = decode(bytes_view(*bytes));
    ENSURE(again.has_value() and *again == *payload);
}

constexpr auto write = [](byte_writer& writer, const auto& payload) { (void)encode(writer, payload); };

// Two overlapping names may together exceed the buffer; the encoder then refuses them.
void reparse(bytes_view input) {
    const auto point = decode_reparse_point(input);
    if (!point) return;
    std::vector<std::byte> room(2 * input.size() + 64);
    byte_writer writer{mutable_bytes(room)};
    if (!encode(writer, *point)) return;
    ENSURE(decode_reparse_point(*writer.finish()) == point);
}

// Its entries may share texts, too.
void referral_reply(bytes_view input) {
    const auto reply = decode_dfs_referral_reply(input);
    if (!reply) return;
    const std::size_t bytes = encoded_bytes_of(*reply).value();
    ENSURE(bytes <= (dfs_targets_max + 1) * (dfs_path_bytes_max + 64));
    std::vector<std::byte> room(bytes);
    byte_writer writer{mutable_bytes(room)};
    ENSURE(encode(writer, *reply).has_value());
    ENSURE(decode_dfs_referral_reply(*writer.finish()) == reply);
}

constexpr unsigned selectors = 32;  // 15: reparse points

void decode_referral(unsigned which, bytes_view input) {
    switch (which) {
        case 29:
            return round_trip(input, decode_dfs_referral_request, write);
        case 30:
            return round_trip(input, decode_dfs_referral_request_ex, write);
        case 31:
            return referral_reply(input);
        default:
            return reparse(input);
    }
}

void decode_one(unsigned which, bytes_view input) {
    switch (which) {
        case 0:
            return round_trip(input, [](bytes_view b) { return decode_copy_chunk_request(b, {}); }, write);
        case 1:
            return round_trip(input, decode_copy_chunk_response, write);
        case 2:
            return round_trip(input, decode_resume_key, encode_resume_key);
        case 3:
            return round_trip(input, decode_duplicate_extents_request, write);
        case 4:
            return round_trip(input, decode_duplicate_extents_ex_request, write);
        case 5:
            return round_trip(input, decode_set_zero_data, encode_set_zero_data);
        case 6:
            return round_trip(input, decode_allocated_range, encode_allocated_range);
        case 7:
            return round_trip(input, decode_allocated_ranges, [](byte_writer& writer, const auto& ranges) {
                for (const file_range& range : ranges)
                    encode_allocated_range(writer, range);
            });
        case 8:
            return round_trip(input, decode_file_level_trim, encode_file_level_trim);
        case 9:
            return round_trip(input, decode_file_region_request, write);
        case 10:
            return round_trip(input, decode_validate_negotiate_request, write);
        case 11:
            return round_trip(input, decode_validate_negotiate_reply, write);
        case 12:
            return round_trip(input, decode_network_interfaces, encode_network_interfaces);
        case 13:
            return round_trip(input, decode_resiliency_request, write);
        case 14:
            return round_trip(input, decode_pipe_wait_request, write);
        case 16:
            return round_trip(input, decode_compression_state, write);
        case 17:
            return round_trip(input, decode_integrity_state, write);
        case 18:
            return round_trip(input, decode_object_id, write);
        case 19:
            return round_trip(input, decode_pipe_peek_state, write);
        case 20:
            return round_trip(input, decode_mark_handle_request, write);
        case 21:
            return round_trip(input, decode_ntfs_volume_data, write);
        case 22:
            return round_trip(input, decode_read_usn_request, write);
        case 23:
            return round_trip(input, decode_usn_record, write);
        case 24:
            return round_trip(input, decode_file_regions, [](byte_writer& writer, const auto& regions) {
                encode_file_regions(writer, regions, 0);
            });
        case 25:
            return round_trip(input, decode_offload_read_request, write);
        case 26:
            return round_trip(input, decode_offload_read_reply, write);
        case 27:
            return round_trip(input, decode_offload_write_request, write);
        case 28:
            return round_trip(input, decode_offload_write_reply, write);
        default:
            return decode_referral(which, input);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    decode_one(data[0] % selectors, bytes_view(reinterpret_cast<const std::byte*>(data + 1), size - 1));
    return 0;
}
