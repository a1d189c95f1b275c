#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_filesystem_information.hpp"

// The classes of [MS-FSCC] 2.5 that QUERY_INFO reports of a volume.

namespace sluice::smb_simulation {
namespace {

using wire::filesystem_information_class;

class volume_information : public command_test {
protected:
    compliant_client::answer ask(filesystem_information_class what, std::uint32_t bytes_max = 4096) {
        return client().call(command::query_info,
                             wire::query_info_args{.type = wire::info_type::file_system,
                                                   .information_class = static_cast<std::uint8_t>(what),
                                                   .output_bytes_max = bytes_max,
                                                   .file = open_directory("")});
    }
};

TEST_F(volume_information, reports_the_space_in_units_of_both_sizes) {
    const auto whole = ask(filesystem_information_class::full_size);
    const auto full = wire::decode_fs_full_size_information(output_of(whole)).value();
    const auto part = ask(filesystem_information_class::size);
    const auto size = wire::decode_fs_size_information(output_of(part)).value();
    EXPECT_EQ(full.total_units, size.total_units);
    EXPECT_EQ(full.available_to_caller_units, size.available_units);
    EXPECT_EQ(full.bytes_per_sector, size.bytes_per_sector);
    EXPECT_LE(full.available_to_caller_units, full.total_units);
}

TEST_F(volume_information, names_the_features_of_the_file_system) {
    const auto said = ask(filesystem_information_class::attribute);
    const auto information = wire::decode_fs_attribute_information(output_of(said)).value();
    EXPECT_EQ(information.filesystem_name, "NTFS");
    EXPECT_TRUE(wire::has(information.attributes, wire::filesystem_attributes::named_streams));
    EXPECT_TRUE(wire::has(information.attributes, wire::filesystem_attributes::object_ids));
    EXPECT_TRUE(wire::has(information.attributes, wire::filesystem_attributes::file_compression));
    EXPECT_FALSE(wire::has(information.attributes, wire::filesystem_attributes::block_refcounting));
}

TEST_F(volume_information, is_of_a_disk) {
    const auto said = ask(filesystem_information_class::device);
    EXPECT_EQ(wire::decode_fs_device_information(output_of(said))->type, wire::fs_device_information::disk);
}

TEST_F(volume_information, cuts_a_label_to_the_room_of_the_client) {
    EXPECT_EQ(ask(filesystem_information_class::volume, 23).status(), nt_status::info_length_mismatch);
    const auto cut = ask(filesystem_information_class::volume, 24);
    EXPECT_EQ(cut.status(), nt_status::buffer_overflow);
    EXPECT_EQ(output_of(cut).size(), 24U);
}

TEST_F(volume_information, refuses_classes_that_it_does_not_have) {
    EXPECT_EQ(ask(filesystem_information_class::label).status(), nt_status::invalid_info_class);
    EXPECT_EQ(ask(filesystem_information_class(99)).status(), nt_status::invalid_info_class);
}

}  // namespace
}  // namespace sluice::smb_simulation
