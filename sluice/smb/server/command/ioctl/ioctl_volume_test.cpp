#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_filesystem_information.hpp"
#include "sluice/smb/wire/fsctl/fsctl_volume.hpp"

// Controls that describe a volume of NTFS, and a file as its change journal does.

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class volume_controls : public command_test {
protected:
    wire::id_information identity_of(const wire::file_id& file) {
        const auto said = query(file, wire::file_information_class::id);
        return wire::decode_id_information(output_of(said)).value();
    }
    compliant_client::answer read_usn(const wire::file_id& file, std::uint16_t version_min,
                                      std::uint16_t version_max, std::uint32_t output_bytes_max = 4096) {
        std::array<std::byte, 4> room{};
        byte_writer writer(room);
        encode(writer, wire::read_usn_request{.version_min = version_min, .version_max = version_max});
        return control(control_code::read_file_usn_data, file, *writer.finish(), output_bytes_max);
    }
    static wire::usn_record record_in(const compliant_client::answer& said) {
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_usn_record(output_of_control(said)).value_or(wire::usn_record{});
    }
};

TEST_F(volume_controls, describe_a_volume_as_the_queries_of_its_size_and_identity_do) {
    const wire::file_id file = open_for(wire::file_all_access);
    const auto asked = client().call(command::query_info,
                                     wire::query_info_args{.type = wire::info_type::file_system,
                                                           .information_class = static_cast<std::uint8_t>(
                                                               wire::filesystem_information_class::full_size),
                                                           .output_bytes_max = 100,
                                                           .file = file});
    const auto size = wire::decode_fs_full_size_information(output_of(asked)).value();
    const std::uint64_t serial = identity_of(file).volume_serial;
    const auto said = control(control_code::get_ntfs_volume_data, file);
    ASSERT_EQ(said.status(), nt_status::success);
    const auto volume = wire::decode_ntfs_volume_data(output_of_control(said)).value();
    EXPECT_EQ(volume.serial_number, serial);
    EXPECT_EQ(volume.total_clusters, size.total_units);
    EXPECT_EQ(volume.sector_bytes, size.bytes_per_sector);
    EXPECT_EQ(volume.cluster_bytes, size.bytes_per_sector * size.sectors_per_unit);
    EXPECT_EQ(control(control_code::get_ntfs_volume_data, file, {}, 95).status(),
              nt_status::buffer_too_small);
}

TEST_F(volume_controls, name_a_file_with_its_number_and_that_of_its_directory) {
    const wire::file_number_128 directory = identity_of(open_directory("d")).file_number;
    const wire::file_id file = open_for(wire::file_all_access, "d\\name");
    const wire::file_number_128 number = identity_of(file).file_number;
    const wire::usn_record record = record_in(read_usn(file, 3, 3));
    EXPECT_TRUE(record.is_version_3);
    EXPECT_EQ(record.file, number);
    EXPECT_EQ(record.directory, directory);
    EXPECT_EQ(record.name, "name");
    EXPECT_TRUE(wire::has(record.attributes, wire::file_attributes::archive));
}

TEST_F(volume_controls, name_the_root_without_a_directory) {
    const wire::usn_record record = record_in(read_usn(open_directory(""), 2, 2));
    EXPECT_EQ(record.name, "");
    EXPECT_EQ(record.directory, wire::file_number_128{});
}

TEST_F(volume_controls, use_the_newest_record_that_the_client_understands) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_TRUE(record_in(read_usn(file, 2, 4)).is_version_3);
    EXPECT_FALSE(record_in(read_usn(file, 0, 2)).is_version_3);
    EXPECT_FALSE(record_in(control(control_code::read_file_usn_data, file)).is_version_3);
    EXPECT_EQ(read_usn(file, 4, 5).status(), nt_status::invalid_parameter);
    EXPECT_EQ(read_usn(file, 3, 2).status(), nt_status::invalid_parameter);
}

TEST_F(volume_controls, refuse_a_record_without_room) {
    EXPECT_EQ(read_usn(open_for(wire::file_all_access, "f"), 2, 2, 63).status(), nt_status::buffer_too_small);
    EXPECT_EQ(read_usn(open_for(wire::file_all_access, "f"), 2, 2, 64).status(), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
