#include <gtest/gtest.h>

#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_pipe_information.hpp"
#include "sluice/smb/wire/fscc/fscc_testing.hpp"

namespace sluice::smb::wire {
namespace {

using testing::expect_round_trip;
using testing::field_source;
using testing::written;

basic_information random_basic(field_source& from) {
    return {.created = filetime(from.u64()),
            .accessed = filetime(from.u64()),
            .written = filetime(from.u64()),
            .changed = filetime(from.u64()),
            .attributes = file_attributes(from.u32())};
}

standard_information random_standard(field_source& from) {
    return {.allocation_bytes = from.u64(),
            .end_of_file = from.u64(),
            .links = from.u32(),
            .delete_pending = from.yes(),
            .directory = from.yes()};
}

std::size_t utf16_size(const std::string& text) {
    return *utf16_bytes_of(text);
}

TEST(file_metadata, every_structure_round_trips) {
    field_source from(1);
    for (int round = 0; round < 50; ++round) {
        expect_round_trip(random_basic(from), decode_basic_information, 0, 40);
        expect_round_trip(random_standard(from), decode_standard_information, 0, 24);
        expect_round_trip(network_open_information{.created = filetime(from.u64()),
                                                   .accessed = filetime(from.u64()),
                                                   .written = filetime(from.u64()),
                                                   .changed = filetime(from.u64()),
                                                   .allocation_bytes = from.u64(),
                                                   .end_of_file = from.u64(),
                                                   .attributes = file_attributes(from.u32())},
                          decode_network_open_information, 0, 56);
        expect_round_trip(
            attribute_tag_information{.attributes = file_attributes(from.u32()), .reparse_tag = from.u32()},
            decode_attribute_tag_information, 0, 8);
        expect_round_trip(compression_information{.compressed_bytes = from.u64(),
                                                  .format = compression_format(from.u16()),
                                                  .unit_shift = from.u8(),
                                                  .chunk_shift = from.u8(),
                                                  .cluster_shift = from.u8()},
                          decode_compression_information, 0, 16);
    }
}

TEST(file_scalars, every_structure_round_trips) {
    field_source from(2);
    for (int round = 0; round < 50; ++round) {
        expect_round_trip(internal_information{from.u64()}, decode_internal_information, 0, 8);
        expect_round_trip(ea_information{from.u32()}, decode_ea_information, 0, 4);
        expect_round_trip(access_information{access_mask(from.u32())}, decode_access_information, 0, 4);
        expect_round_trip(position_information{from.size()}, decode_position_information, 0, 8);
        expect_round_trip(mode_information{from.u32()}, decode_mode_information, 0, 4);
        expect_round_trip(alignment_information{from.u32()}, decode_alignment_information, 0, 4);
        expect_round_trip(allocation_information{from.size()}, decode_allocation_information, 0, 8);
        expect_round_trip(end_of_file_information{from.size()}, decode_end_of_file_information, 0, 8);
        expect_round_trip(valid_data_length_information{from.size()}, decode_valid_data_length_information, 0,
                          8);
        expect_round_trip(disposition_information{from.yes()}, decode_disposition_information, 0, 1);
        expect_round_trip(disposition_information_ex{disposition_flags(from.u32())},
                          decode_disposition_information_ex, 0, 4);
        expect_round_trip(id_information{.volume_serial = from.u64(), .file_number = from.bytes<16>()},
                          decode_id_information, 0, 24);
    }
}

TEST(file_scalars, sizes_and_positions_beyond_63_bits_are_rejected) {
    const auto bytes = written([](byte_writer& writer) { writer.put(le64(1ULL << 63)); });
    EXPECT_EQ(decode_end_of_file_information(bytes).error(), decode_error::bad_value);
    EXPECT_EQ(decode_allocation_information(bytes).error(), decode_error::bad_value);
    EXPECT_EQ(decode_valid_data_length_information(bytes).error(), decode_error::bad_value);
    EXPECT_EQ(decode_position_information(bytes).error(), decode_error::bad_value);
}

TEST(file_names, every_structure_round_trips) {
    field_source from(3);
    for (int round = 0; round < 50; ++round) {
        const std::string name = from.name();
        const std::size_t text = std::max<std::size_t>(utf16_size(name), 4);
        expect_round_trip(rename_information{.replace_if_exists = from.yes(), .target = name + "xy"},
                          decode_rename_information, utf16_size(name) + 4, 20);
        expect_round_trip(link_information{.replace_if_exists = from.yes(), .target = name + "xy"},
                          decode_link_information, utf16_size(name) + 4, 20);
        expect_round_trip(rename_information_ex{.flags = rename_flags(from.u32()), .target = name + "xy"},
                          decode_rename_information_ex, utf16_size(name) + 4, 20);
        EXPECT_EQ(written([&](byte_writer& writer) {
                      (void)encode(writer, rename_information{.target = name});
                  }).size(),
                  20 + text)
            << "never shorter than Windows accepts";
        const auto bytes = written([&](byte_writer& writer) { (void)encode_name_information(writer, name); });
        EXPECT_EQ(bytes.size(), 4 + utf16_size(name));
        EXPECT_EQ(decode_name_information(bytes), name);
    }
}

TEST(file_names, names_that_exceed_the_bytes_or_are_not_utf16_are_rejected) {
    const auto too_long = written([](byte_writer& writer) {
        writer.put(le32(0xFFFFFFFF));
        writer.put(le16('a'));
    });
    EXPECT_EQ(decode_name_information(too_long).error(), decode_error::range_outside_message);
    const auto odd = written([](byte_writer& writer) {
        writer.put(le32(1));
        writer.put(le16('a'));
    });
    EXPECT_EQ(decode_name_information(odd).error(), decode_error::bad_text);

    std::vector<std::byte> room(64);
    byte_writer writer{mutable_bytes(room)};
    EXPECT_EQ(encode_name_information(writer, "\xFF").error(), decode_error::bad_text);
    EXPECT_EQ(encode(writer, rename_information{.target = "\xFF"}).error(), decode_error::bad_text);
    EXPECT_EQ(encode(writer, all_information{.name = "\xFF"}).error(), decode_error::bad_text);
    EXPECT_EQ(writer.position(), 0u);
}

TEST(file_names, a_rename_relative_to_another_directory_is_rejected) {
    auto bytes =
        written([](byte_writer& writer) { (void)encode(writer, rename_information{.target = "name"}); });
    bytes[8] = std::byte{1};
    EXPECT_EQ(decode_rename_information(bytes).error(), decode_error::bad_value);
    EXPECT_EQ(decode_link_information(bytes).error(), decode_error::bad_value);
}

TEST(file_names, reserved_bytes_after_the_replace_flag_are_ignored) {
    auto bytes =
        written([](byte_writer& writer) { (void)encode(writer, rename_information{.target = "name"}); });
    bytes[1] = bytes[7] = std::byte{0xEE};
    EXPECT_EQ(decode_rename_information(bytes),
              (rename_information{.replace_if_exists = false, .target = "name"}));
}

TEST(all_information, is_unchanged_by_a_round_trip) {
    field_source from(4);
    for (int round = 0; round < 20; ++round) {
        const all_information all{.basic = random_basic(from),
                                  .standard = random_standard(from),
                                  .internal = {from.u64()},
                                  .ea = {from.u32()},
                                  .access = {access_mask(from.u32())},
                                  .position = {from.size()},
                                  .mode = {from.u32()},
                                  .alignment = {from.u32()},
                                  .name = from.name()};
        expect_round_trip(all, decode_all_information, utf16_size(all.name), all_information_fixed_bytes);
    }
}

TEST(pipe_information, round_trips_and_rejects_unknown_modes) {
    field_source from(5);
    for (int round = 0; round < 20; ++round) {
        expect_round_trip(pipe_information{.reads = pipe_information::read_mode(from.below(2)),
                                           .completion = pipe_information::completion_mode(from.below(2))},
                          decode_pipe_information, 0, 8);
        expect_round_trip(pipe_local_information{.type = from.u32(),
                                                 .configuration = from.u32(),
                                                 .instances_max = from.u32(),
                                                 .instances = from.u32(),
                                                 .inbound_quota_bytes = from.u32(),
                                                 .readable_bytes = from.u32(),
                                                 .outbound_quota_bytes = from.u32(),
                                                 .writable_bytes = from.u32(),
                                                 .state = from.u32(),
                                                 .end = from.u32()},
                          decode_pipe_local_information, 0, 40);
    }
    const auto unknown = written([](byte_writer& writer) { writer.put(le64(2)); });
    EXPECT_EQ(decode_pipe_information(unknown).error(), decode_error::bad_value);
}

}  // namespace
}  // namespace sluice::smb::wire
