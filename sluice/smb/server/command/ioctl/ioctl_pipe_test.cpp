#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"

// Controls of named pipes.

namespace sluice::smb_simulation {
namespace {

using wire::control_code;

class pipe_controls : public command_test {
protected:
    nt_status wait_for(const std::string& name) {
        std::array<std::byte, 128> room{};
        byte_writer writer(room);
        EXPECT_TRUE(encode(writer, wire::pipe_wait_request{.name = name}));
        return control(control_code::pipe_wait, wire::file_id_of_no_file, *writer.finish()).status();
    }
};

TEST_F(pipe_controls, report_a_pipe_without_an_answer_as_empty) {
    const auto said = control(control_code::pipe_peek, open_pipe());
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(wire::decode_pipe_peek_state(output_of_control(said)), wire::pipe_peek_state{});
}

TEST_F(pipe_controls, refuse_output_without_room_for_the_state) {
    EXPECT_EQ(control(control_code::pipe_peek, open_pipe(), {}, 15).status(), nt_status::buffer_too_small);
}

TEST_F(pipe_controls, answer_no_part_of_a_request) {
    const std::array part{std::byte{5}};
    EXPECT_EQ(control(control_code::pipe_transceive, open_pipe(), bytes_view(part)).status(),
              nt_status::invalid_pipe_state);
}

TEST_F(pipe_controls, find_the_pipes_of_services_on_their_share_alone) {
    EXPECT_EQ(wait_for("srvsvc"), nt_status::invalid_device_request);
    ASSERT_EQ(client().connect_tree("IPC$"), nt_status::success);
    EXPECT_EQ(wait_for("srvsvc"), nt_status::success);
    EXPECT_EQ(wait_for("no_service"), nt_status::object_name_not_found);
}

}  // namespace
}  // namespace sluice::smb_simulation
