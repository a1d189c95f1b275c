#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

#include "sluice/smb/wire/fscc/fscc_testing.hpp"
#include "sluice/smb/wire/fscc/reparse_point.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"
#include "sluice/smb/wire/fsctl/fsctl_offload.hpp"
#include "sluice/smb/wire/fsctl/fsctl_range.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"
#include "sluice/smb/wire/fsctl/fsctl_volume.hpp"

namespace sluice::smb::wire {
namespace {

using testing::expect_round_trip;
using testing::field_source;
using testing::written;

file_range random_range(field_source& from) {
    return {.offset = from.size() / 2, .length = from.size() / 2};
}

duplicate_extents_request random_extents(field_source& from) {
    return {.source = {.persistent_part = le64(from.u64()), .volatile_part = le64(from.u64())},
            .source_offset = from.size(),
            .target_offset = from.size(),
            .byte_count = from.size()};
}

TEST(fsctl_attributes, every_payload_round_trips) {
    field_source from(6);
    for (int round = 0; round < 30; ++round) {
        expect_round_trip(compression_state{compression_format(from.below(3))}, decode_compression_state, 0,
                          2);
        expect_round_trip(integrity_state{from.u16(), from.u32(), from.u32(), from.u32()},
                          decode_integrity_state, 0, 16);
        expect_round_trip(
            object_id{.id = {from.bytes<16>()},
                      .birth_volume_object_and_domain = {{{from.bytes<16>()}, {from.bytes<16>()}, {}}}},
            decode_object_id, 0, 64);
        expect_round_trip(pipe_peek_state{from.u32(), from.u32(), from.u32(), from.u32()},
                          decode_pipe_peek_state, 0, 16);
        expect_round_trip(mark_handle_request{from.u32(), from.u32()}, decode_mark_handle_request, 0, 24);
    }
}

TEST(fsctl_attributes, unknown_formats_of_compression_are_rejected) {
    const std::array<std::byte, 2> unknown{std::byte{3}, std::byte{}};
    EXPECT_EQ(decode_compression_state(unknown).error(), decode_error::bad_value);
}

TEST(fsctl_copy, requests_and_replies_round_trip) {
    field_source from(1);
    const auto decode = [](bytes_view bytes) { return decode_copy_chunk_request(bytes, {}); };
    for (int round = 0; round < 30; ++round) {
        copy_chunk_request request{.source = from.bytes<24>()};
        for (std::size_t left = from.below(5); left != 0; --left)
            request.chunks.push_back(
                {.source_offset = from.u64(), .target_offset = from.u64(), .length = from.u32()});
        expect_round_trip(request, decode, request.chunks.size() * 24, 32);
        expect_round_trip(copy_chunk_response{from.u32(), from.u32(), from.u32()}, decode_copy_chunk_response,
                          0, 12);
        expect_round_trip(random_extents(from), decode_duplicate_extents_request, 0, 40);
        expect_round_trip(duplicate_extents_ex_request{.range = random_extents(from), .flags = from.u32()},
                          decode_duplicate_extents_ex_request, 0, 56);
    }
    const resume_key key = from.bytes<24>();
    const auto bytes = written([&](byte_writer& writer) { encode_resume_key(writer, key); });
    EXPECT_EQ(bytes.size(), 32u);
    EXPECT_EQ(decode_resume_key(bytes), key);
}

TEST(fsctl_copy, more_chunks_than_the_limit_are_rejected) {
    copy_chunk_request request;
    request.chunks.resize(3);
    const auto bytes = written([&](byte_writer& writer) { encode(writer, request); });
    EXPECT_TRUE(decode_copy_chunk_request(bytes, {.chunks_max = 3}).has_value());
    EXPECT_EQ(decode_copy_chunk_request(bytes, {.chunks_max = 2}).error(), decode_error::too_many);
}

TEST(fsctl_range, ranges_round_trip) {
    field_source from(2);
    std::vector<file_range> ranges;
    for (int round = 0; round < 30; ++round) {
        const file_range range = random_range(from);
        ranges.push_back(range);
        const auto zero = written([&](byte_writer& writer) { encode_set_zero_data(writer, range); });
        EXPECT_EQ(decode_set_zero_data(zero), range);
        EXPECT_EQ(decode_set_zero_data(*bytes_view(zero).first(15)).error(), decode_error::truncated);
        expect_round_trip(
            file_region_request{.range = range, .usage = from.u32()},
            [](bytes_view bytes) {
                return bytes.size() < 24 ? std::unexpected(decode_error::truncated)
                                         : decode_file_region_request(bytes);
            },
            0, 24);
    }
    const auto allocated = written([&](byte_writer& writer) {
        for (const file_range& range : ranges)
            encode_allocated_range(writer, range);
    });
    EXPECT_EQ(decode_allocated_ranges(allocated), ranges);
    EXPECT_EQ(decode_allocated_range(allocated), ranges.front());
    EXPECT_EQ(decode_allocated_ranges(*bytes_view(allocated).first(17)).error(), decode_error::truncated);
    const auto trim = written([&](byte_writer& writer) { encode_file_level_trim(writer, ranges); });
    EXPECT_EQ(decode_file_level_trim(trim), ranges);
    EXPECT_EQ(decode_file_level_trim(*bytes_view(trim).first(trim.size() - 1)).error(),
              decode_error::truncated);
    const auto regions = written(
        [&](byte_writer& writer) { encode_file_regions(writer, {{.range = ranges[0], .usage = 1}}, 5); });
    EXPECT_EQ(regions.size(), file_regions_bytes(1));
    EXPECT_EQ(decode_file_regions(regions)->at(0).range, ranges[0]);
    EXPECT_EQ(decode_file_regions(*bytes_view(regions).first(39)).error(), decode_error::truncated);
    EXPECT_TRUE(
        decode_file_region_request(*bytes_view(regions).slice({.offset = 16, .length = 20})).has_value());
}

TEST(fsctl_range, ranges_that_end_beyond_63_bits_or_before_they_begin_are_rejected) {
    const auto pair = [](std::uint64_t a, std::uint64_t b) {
        return written([&](byte_writer& writer) {
            writer.put(le64(a));
            writer.put(le64(b));
        });
    };
    EXPECT_EQ(decode_allocated_range(pair(1, (1ULL << 63) - 1)).error(), decode_error::bad_value);
    EXPECT_EQ(decode_allocated_range(pair(~0ULL, 1)).error(), decode_error::bad_value);
    EXPECT_TRUE(decode_allocated_range(pair(0, (1ULL << 63) - 1)).has_value());
    EXPECT_EQ(decode_set_zero_data(pair(2, 1)).error(), decode_error::bad_value);
    EXPECT_EQ(decode_set_zero_data(pair(0, 1ULL << 63)).error(), decode_error::bad_value);
}

TEST(fsctl_range, trims_with_a_key_are_rejected) {
    auto trim = written([](byte_writer& writer) { encode_file_level_trim(writer, {{.length = 1}}); });
    trim[0] = std::byte{1};
    EXPECT_EQ(decode_file_level_trim(trim).error(), decode_error::bad_value);
}

TEST(fsctl_range, regions_without_a_buffer_are_those_of_the_whole_file) {
    const auto whole = decode_file_region_request({});
    ASSERT_TRUE(whole.has_value());
    EXPECT_EQ(whole->range, (file_range{.offset = 0, .length = (1ULL << 63) - 1}));
    EXPECT_EQ(whole->usage, file_region_request::valid_cached_data);
}

TEST(fsctl_range, sparse_without_a_buffer_means_yes) {
    EXPECT_TRUE(decode_set_sparse({}));
    for (const bool sparse : {false, true})
        EXPECT_EQ(decode_set_sparse(written([&](byte_writer& writer) { encode_set_sparse(writer, sparse); })),
                  sparse);
}

TEST(fsctl_session, requests_and_replies_round_trip) {
    field_source from(3);
    for (int round = 0; round < 30; ++round) {
        validate_negotiate_request request{
            .capabilities = from.u32(), .client = {from.bytes<16>()}, .security_mode = from.u16()};
        for (std::size_t left = from.below(6); left != 0; --left)
            request.dialects.push_back(from.u16());
        expect_round_trip(request, decode_validate_negotiate_request, request.dialects.size() * 2, 24);
        expect_round_trip(validate_negotiate_reply{.capabilities = from.u32(),
                                                   .server = {from.bytes<16>()},
                                                   .security_mode = from.u16(),
                                                   .dialect_revision = from.u16()},
                          decode_validate_negotiate_reply, 0, 24);
        expect_round_trip(resiliency_request{from.u32()}, decode_resiliency_request, 0, 8);
        pipe_wait_request wait{.name = from.name()};
        if (from.yes()) wait.timeout_ticks = from.u64();
        expect_round_trip(wait, decode_pipe_wait_request, *utf16_bytes_of(wait.name), 14);
    }
}

TEST(fsctl_session, interfaces_of_both_families_round_trip_and_others_are_skipped) {
    field_source from(4);
    std::vector<network_interface> interfaces;
    for (int i = 0; i < 4; ++i) {
        interfaces.push_back({.index = from.u32(),
                              .capability = network_interface::rss_capable,
                              .link_speed_bits_per_second = from.u64(),
                              .ipv6 = i % 2 == 1,
                              .address = from.bytes<16>()});
        if (!interfaces.back().ipv6)
            std::fill(interfaces.back().address.begin() + 4, interfaces.back().address.end(), std::byte{});
    }
    auto bytes = written([&](byte_writer& writer) { encode_network_interfaces(writer, interfaces); });
    EXPECT_EQ(bytes.size(), 4 * 152u);
    EXPECT_EQ(decode_network_interfaces(bytes), interfaces);
    EXPECT_EQ(decode_network_interfaces({}), std::vector<network_interface>());
    EXPECT_FALSE(decode_network_interfaces(*bytes_view(bytes).first(4 * 152 - 1)).has_value());
    bytes[24] = std::byte{99};
    interfaces.erase(interfaces.begin());
    EXPECT_EQ(decode_network_interfaces(bytes), interfaces);
}

TEST(fsctl_volume, requests_and_replies_round_trip) {
    field_source from(7);
    for (int round = 0; round < 30; ++round) {
        expect_round_trip(
            ntfs_volume_data{from.u64(), from.u64(), from.u64(), from.u64(), from.u32(), from.u32()},
            decode_ntfs_volume_data, 0, 96);
        const auto versions = std::minmax({from.u16(), from.u16()});
        const read_usn_request request{versions.first, versions.second};
        const auto bytes = written([&](byte_writer& writer) { encode(writer, request); });
        EXPECT_EQ(decode_read_usn_request(bytes), request);
        EXPECT_EQ(decode_read_usn_request(*bytes_view(bytes).first(3)).error(), decode_error::truncated);
        usn_record record{.is_version_3 = from.yes(),
                          .file = {},
                          .directory = {},
                          .attributes = file_attributes(from.u32()),
                          .name = from.name()};
        std::ranges::copy(from.bytes<8>(), record.file.begin());
        std::ranges::copy(from.bytes<8>(), record.directory.begin());
        if (record.is_version_3) record.file.back() = std::byte{7};
        const auto encoded =
            written([&](byte_writer& writer) { ASSERT_TRUE(encode(writer, record).has_value()); });
        EXPECT_EQ(encoded.size(), usn_record_bytes(record));
        EXPECT_EQ(encoded.size() % 8, 0u);
        EXPECT_EQ(decode_usn_record(encoded), record);
        EXPECT_EQ(decode_usn_record(*bytes_view(encoded).first(encoded.size() - 1)).error(),
                  decode_error::truncated);
    }
}

TEST(fsctl_volume, clients_that_send_no_versions_understand_the_second) {
    EXPECT_EQ(decode_read_usn_request({}), (read_usn_request{.version_min = 2, .version_max = 2}));
    const auto bytes = written([](byte_writer& writer) { encode(writer, read_usn_request{3, 2}); });
    EXPECT_EQ(decode_read_usn_request(bytes).error(), decode_error::bad_value);
}

TEST(fsctl_volume, records_of_other_versions_and_with_names_outside_are_rejected) {
    const usn_record record{.is_version_3 = false, .name = "ab"};
    auto bytes = written([&](byte_writer& writer) { ASSERT_TRUE(encode(writer, record).has_value()); });
    auto other = bytes;
    other[4] = std::byte{4};
    EXPECT_EQ(decode_usn_record(other).error(), decode_error::bad_value);
    bytes[58] = std::byte{0xff};
    EXPECT_EQ(decode_usn_record(bytes).error(), decode_error::range_outside_message);
}

TEST(fsctl_offload, requests_and_replies_round_trip) {
    field_source from(8);
    for (int round = 0; round < 30; ++round) {
        const offload_token token{.type = from.u32(), .id = from.bytes<504>()};
        expect_round_trip(offload_read_request{from.u32(), from.size() / 2, from.size() / 2},
                          decode_offload_read_request, 0, 32);
        expect_round_trip(offload_read_reply{from.u32(), from.u64(), token}, decode_offload_read_reply, 0,
                          528);
        expect_round_trip(offload_write_request{from.size() / 2, from.size() / 2, from.size() / 2, token},
                          decode_offload_write_request, 0, 544);
        expect_round_trip(offload_write_reply{from.u64()}, decode_offload_write_reply, 0, 16);
    }
}

TEST(fsctl_offload, ranges_beyond_all_files_and_other_sizes_are_rejected) {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    const auto decode = [](const auto& request, auto decoder, std::byte size) {
        auto bytes = written([&](byte_writer& writer) { encode(writer, request); });
        bytes[0] = size;
        return decoder(bytes_view(bytes));
    };
    const offload_read_request whole{.length = most};
    EXPECT_EQ(decode(whole, decode_offload_read_request, std::byte{32}), whole);
    EXPECT_EQ(decode(whole, decode_offload_read_request, std::byte{31}).error(),
              decode_error::bad_structure_size);
    EXPECT_EQ(
        decode(offload_read_request{.offset = 1, .length = most}, decode_offload_read_request, std::byte{32})
            .error(),
        decode_error::bad_value);
    for (const offload_write_request& beyond : {offload_write_request{.offset = 1, .length = most},
                                                offload_write_request{.length = most, .token_offset = 1},
                                                offload_write_request{.offset = most + 1}})
        EXPECT_EQ(decode(beyond, decode_offload_write_request, std::byte{32}).error(),
                  decode_error::bad_value);
}

TEST(fsctl_offload, tokens_have_their_numbers_in_the_byte_order_of_scsi) {
    const auto bytes = written([](byte_writer& writer) {
        encode(writer, offload_read_reply{.token = {.type = offload_token::type_zero_data}});
    });
    EXPECT_EQ(bytes[16], std::byte{0xff});
    EXPECT_EQ(bytes[19], std::byte{1});
    EXPECT_EQ(bytes[22], std::byte{1});
    EXPECT_EQ(bytes[23], std::byte{0xf8});
}

TEST(reparse_point, points_of_every_kind_round_trip) {
    field_source from(5);
    for (int round = 0; round < 30; ++round) {
        const std::string target = from.name();
        const std::string print = from.name();
        const std::size_t text = *utf16_bytes_of(target) + *utf16_bytes_of(print);
        expect_round_trip(reparse_point(reparse_symlink{target, print, from.yes()}), decode_reparse_point,
                          text, 20);
        expect_round_trip(reparse_point(reparse_mount_point{target, print}), decode_reparse_point, text, 16);
        expect_round_trip(
            reparse_point(reparse_other{.tag = reparse_tag_nfs, .data = {std::byte{1}, std::byte{2}}}),
            decode_reparse_point, 2, 8);
        expect_round_trip(
            reparse_point(reparse_other{.tag = 0x0000BEEF, .owner = {from.bytes<16>()}, .data = {}}),
            decode_reparse_point, 0, 24);
    }
}

TEST(reparse_point, names_outside_the_data_and_data_beyond_the_limit_are_rejected) {
    auto bytes = written([](byte_writer& writer) {
        ASSERT_TRUE(encode(writer, reparse_point(reparse_symlink{"ab", "c", true})).has_value());
    });
    bytes[8] = std::byte{4};
    EXPECT_EQ(decode_reparse_point(bytes).error(), decode_error::range_outside_message);
    bytes[5] = std::byte{0x41};
    EXPECT_EQ(decode_reparse_point(bytes).error(), decode_error::too_long);
    std::vector<std::byte> room(64);
    byte_writer writer{mutable_bytes(room)};
    EXPECT_EQ(encode(writer, reparse_point(reparse_symlink{std::string(9000, 'a'), "", false})).error(),
              decode_error::too_long);
    EXPECT_EQ(encode(writer, reparse_point(reparse_mount_point{"\xFF", ""})).error(), decode_error::bad_text);
    EXPECT_EQ(writer.position(), 0u);
}

}  // namespace
}  // namespace sluice::smb::wire
