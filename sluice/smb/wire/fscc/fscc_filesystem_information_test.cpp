#include "sluice/smb/wire/fscc/fscc_filesystem_information.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/fscc/fscc_testing.hpp"

namespace sluice::smb::wire {
namespace {

using testing::expect_round_trip;
using testing::field_source;

TEST(filesystem_information, every_structure_round_trips) {
    field_source from(1);
    for (int round = 0; round < 50; ++round) {
        const std::string name = from.name();
        const std::size_t text = *utf16_bytes_of(name);
        expect_round_trip(fs_volume_information{.created = filetime(from.u64()),
                                                .serial_number = from.u32(),
                                                .supports_objects = from.yes(),
                                                .label = name},
                          decode_fs_volume_information, text, 18);
        expect_round_trip(fs_size_information{.total_units = from.u64(),
                                              .available_units = from.u64(),
                                              .sectors_per_unit = from.u32(),
                                              .bytes_per_sector = from.u32()},
                          decode_fs_size_information, 0, 24);
        expect_round_trip(fs_full_size_information{.total_units = from.u64(),
                                                   .available_to_caller_units = from.u64(),
                                                   .available_units = from.u64(),
                                                   .sectors_per_unit = from.u32(),
                                                   .bytes_per_sector = from.u32()},
                          decode_fs_full_size_information, 0, 32);
        expect_round_trip(fs_device_information{.type = from.u32(), .characteristics = from.u32()},
                          decode_fs_device_information, 0, 8);
        expect_round_trip(fs_attribute_information{.attributes = filesystem_attributes(from.u32()),
                                                   .name_units_max = from.u32(),
                                                   .filesystem_name = name},
                          decode_fs_attribute_information, text, 12);
        expect_round_trip(fs_control_information{.free_space_start_filtering = from.u64(),
                                                 .free_space_threshold = from.u64(),
                                                 .free_space_stop_filtering = from.u64(),
                                                 .default_quota_threshold = from.u64(),
                                                 .default_quota_limit = from.u64(),
                                                 .flags = from.u32()},
                          decode_fs_control_information, 0, 48);
        expect_round_trip(
            fs_object_id_information{.object_id = {from.bytes<16>()}, .extended = from.bytes<48>()},
            decode_fs_object_id_information, 0, 64);
        expect_round_trip(fs_sector_size_information{.logical_bytes = from.u32(),
                                                     .physical_bytes_for_atomicity = from.u32(),
                                                     .physical_bytes_for_performance = from.u32(),
                                                     .effective_physical_bytes_for_atomicity = from.u32(),
                                                     .flags = from.u32(),
                                                     .sector_alignment_bytes = from.u32(),
                                                     .partition_alignment_bytes = from.u32()},
                          decode_fs_sector_size_information, 0, 28);
    }
}

TEST(filesystem_information, a_label_that_is_not_utf8_is_rejected_without_output) {
    std::vector<std::byte> room(64);
    byte_writer writer{mutable_bytes(room)};
    EXPECT_EQ(encode(writer, fs_volume_information{.label = "\xFF"}).error(), decode_error::bad_text);
    EXPECT_EQ(encode(writer, fs_attribute_information{.filesystem_name = "\xFF"}).error(),
              decode_error::bad_text);
    EXPECT_EQ(writer.position(), 0u);
}

}  // namespace
}  // namespace sluice::smb::wire
