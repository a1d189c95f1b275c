#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"

// Controls of a file's properties: compression, object identifiers, snapshots.

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class attribute_controls : public command_test {
protected:
    nt_status set_compression(const wire::file_id& file, wire::compression_format format) {
        std::array<std::byte, 2> room{};
        byte_writer writer(room);
        encode(writer, wire::compression_state{.format = format});
        return control(control_code::set_compression, file, *writer.finish()).status();
    }
};

TEST_F(attribute_controls, report_a_file_as_uncompressed_and_compress_none) {
    const wire::file_id file = open_for(wire::file_all_access);
    const auto said = control(control_code::get_compression, file);
    EXPECT_EQ(wire::decode_compression_state(output_of_control(said))->format, wire::compression_format::none);
    EXPECT_EQ(set_compression(file, wire::compression_format::none), nt_status::success);
    EXPECT_EQ(set_compression(file, wire::compression_format::lznt1), nt_status::not_supported);
}

TEST_F(attribute_controls, give_each_file_an_identifier_that_stays) {
    const auto identifier = [&](std::string_view name) {
        const auto said =
            control(control_code::create_or_get_object_id, open_for(wire::file_all_access, name));
        return wire::decode_object_id(output_of_control(said))->id;
    };
    const wire::guid first = identifier("a");
    EXPECT_EQ(identifier("a"), first);
    EXPECT_NE(identifier("b"), first);
}

TEST_F(attribute_controls, report_no_snapshots) {
    const auto said =
        control(control_code::srv_enumerate_snapshots, open_for(wire::file_all_access), {}, 16);
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(output_of_control(said).size(), wire::no_snapshots_bytes);
}

TEST_F(attribute_controls, refuse_output_without_room) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(control(control_code::get_compression, file, {}, 1).status(), nt_status::buffer_too_small);
    EXPECT_EQ(control(control_code::create_or_get_object_id, file, {}, 63).status(),
              nt_status::buffer_too_small);
    EXPECT_EQ(control(control_code::srv_enumerate_snapshots, file, {}, 15).status(),
              nt_status::invalid_parameter);
}

}  // namespace
}  // namespace sluice::smb_simulation
