#include "sluice/smb/wire/file/oplock_break.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

// Acknowledgements of breaks ([MS-SMB2] 3.3.5.22): those of no break are refused.

namespace sluice::smb_simulation {
namespace {

using wire::oplock_level;

class oplock_break_command : public command_test {
protected:
    [[nodiscard]] wire::file_id open_with_oplock() {
        auto how = polite_client::for_everything();
        how.oplock_level = oplock_level::batch;
        const wire::create_reply reply = client().create("f", how);
        EXPECT_EQ(reply.oplock_level, oplock_level::batch);
        return reply.file;
    }
    nt_status acknowledge(const wire::file_id& file, oplock_level level) {
        return status_of(command::oplock_break,
                         wire::oplock_break_args{wire::oplock_break{.oplock_level = level, .file = file}});
    }
};

TEST_F(oplock_break_command, without_a_break_is_refused) {
    EXPECT_EQ(acknowledge(open_with_oplock(), oplock_level::none), nt_status::invalid_oplock_protocol);
    EXPECT_EQ(acknowledge(open_for(wire::file_all_access, "g"), oplock_level::none),
              nt_status::invalid_oplock_protocol)
        << "it has no oplock";
}

TEST_F(oplock_break_command, of_an_open_that_has_ended_is_refused) {
    EXPECT_EQ(acknowledge(closed_file(), oplock_level::none), nt_status::file_closed);
}

TEST_F(oplock_break_command, of_an_oplock_names_no_lease) {
    EXPECT_EQ(acknowledge(open_with_oplock(), oplock_level::lease), nt_status::invalid_parameter);
}

TEST_F(oplock_break_command, of_a_lease_that_does_not_exist_is_refused) {
    EXPECT_EQ(status_of(command::oplock_break, wire::oplock_break_args{wire::lease_break{}}),
              nt_status::object_name_not_found);
}

TEST_F(oplock_break_command, is_answered_with_the_level_that_it_acknowledges) {
    const wire::file_id file = open_with_oplock();
    polite_client other(where_, 2);
    ASSERT_EQ(other.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    const std::uint64_t opening = other.send_create("f");
    ASSERT_EQ(client().answer_to(wire::notification_message_id).message().header().command,
              command::oplock_break);
    const auto said = client().call(
        command::oplock_break, wire::oplock_break_args{wire::oplock_break{
                                   .oplock_level = oplock_level::level_2, .file = file}});
    ASSERT_EQ(said.status(), nt_status::success);
    const auto reply = wire::decode_oplock_break_reply(said.message()).value();
    EXPECT_EQ(std::get<wire::oplock_break>(reply.sent).oplock_level, oplock_level::level_2);
    EXPECT_EQ(other.answer_to(opening).status(), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
