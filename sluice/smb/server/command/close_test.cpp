#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"

// CLOSE ([MS-SMB2] 3.3.5.10).

namespace sluice::smb_simulation {
namespace {

class close_command : public command_test {
protected:
    wire::close_reply ask_and_close(const wire::file_id& file) {
        const auto said = client().call(
            command::close, wire::close_args{.flags = wire::close_flags::query_attributes, .file = file});
        EXPECT_EQ(said.status(), nt_status::success);
        return wire::decode_close_reply(said.message()).value();
    }
};

TEST_F(close_command, reports_the_last_status_of_the_file_if_asked) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(write(file, "0123"), nt_status::success);
    const wire::close_reply reply = ask_and_close(file);
    EXPECT_EQ(reply.flags, wire::close_flags::query_attributes);
    EXPECT_EQ(reply.information.end_of_file_bytes, 4U);
}

TEST_F(close_command, reports_no_status_of_a_file_that_it_has_removed) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(set_information(file, wire::file_information_class::disposition,
                              wire::disposition_information{.delete_on_close = true}),
              nt_status::success);
    const wire::close_reply reply = ask_and_close(file);
    EXPECT_EQ(reply.flags, wire::close_flags::none);
    EXPECT_EQ(reply.information.creation_time, wire::filetime{});
}

// [MS-FSA] 2.1.5.5. Microsoft's DirectoryLeasing_BreakHandleCachingByParentRenamed.
TEST_F(close_command, leaves_a_directory_with_entries_despite_delete_on_close) {
    auto doomed = compliant_client::for_everything();
    doomed.options = wire::create_options::directory_file | wire::create_options::delete_on_close;
    const wire::file_id directory = client().create("d", doomed).file;
    EXPECT_EQ(close(open_for(wire::file_all_access, "d\\f")), nt_status::success);
    EXPECT_EQ(close(directory), nt_status::success);
    EXPECT_EQ(close(open_for(wire::file_all_access, "d\\f")), nt_status::success);
}

TEST_F(close_command, reports_a_directory_that_another_program_has_filled_since_it_was_marked) {
    const wire::file_id directory = open_directory("d");
    ASSERT_EQ(set_information(directory, wire::file_information_class::disposition,
                              wire::disposition_information{.delete_on_close = true}),
              nt_status::success);
    vfs::volume& volume = server_of_test().context().find_share("files")->volume();
    ASSERT_TRUE(volume.create("d/f", vfs::creation_request{}));
    EXPECT_EQ(close(directory), nt_status::directory_not_empty);
}

TEST_F(close_command, reports_no_status_unless_asked) {
    const auto said =
        client().call(command::close, wire::close_args{.file = open_for(wire::file_all_access)});
    ASSERT_EQ(said.status(), nt_status::success);
    EXPECT_EQ(wire::decode_close_reply(said.message()), wire::close_reply{});
}

TEST_F(close_command, reports_no_status_for_a_pipe) {
    EXPECT_EQ(ask_and_close(open_pipe()).flags, wire::close_flags::none);
}

// Requests of other loops may still hold the open, and compare its client with theirs.
TEST_F(close_command, leaves_the_open_its_client) {
    const wire::file_id file = open_for(wire::file_all_access);
    const auto held = server_of_test().context().opens.find(file);
    ASSERT_NE(held, nullptr);
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_EQ(held->counted.amount(), 0U);
    EXPECT_TRUE(held->counted.client());
}

TEST_F(close_command, ends_an_open_once) {
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_EQ(close(file), nt_status::file_closed);
    EXPECT_EQ(server_of_test().gauges().opens, 0U);
}

// [MS-SMB2] 3.3.5.2.7.2. smbtorture's compound_async.getinfo_middle.
TEST_F(close_command, ends_the_open_of_the_create_before_it_in_a_related_compound_whatever_it_names) {
    const wire::file_id other = open_for(wire::file_all_access, "other");
    client().begin_compound();
    const std::uint64_t created = client().send_create("f");
    client().flags = wire::header_flags::related;
    const std::uint64_t closed = client().send(command::close, wire::close_args{.file = other});
    client().flags = wire::header_flags::none;
    client().end_compound();
    EXPECT_EQ(client().answer_to(created).status(), nt_status::success);
    EXPECT_EQ(client().answer_to(closed).status(), nt_status::success);
    EXPECT_EQ(server_of_test().gauges().opens, 1U);
    EXPECT_EQ(close(other), nt_status::success);
}

TEST_F(close_command, ends_no_open_of_an_earlier_create_if_the_one_before_it_is_malformed) {
    client().begin_compound();
    const std::uint64_t created = client().send_create("f");
    client().flags = wire::header_flags::related;
    const std::uint64_t malformed = client().send(command::create, wire::close_args{});
    const std::uint64_t closed =
        client().send(command::close, wire::close_args{.file = wire::file_id_of_previous});
    client().flags = wire::header_flags::none;
    client().end_compound();
    EXPECT_EQ(client().answer_to(created).status(), nt_status::success);
    EXPECT_EQ(client().answer_to(malformed).status(), nt_status::invalid_parameter);
    EXPECT_EQ(client().answer_to(closed).status(), nt_status::invalid_parameter);
    EXPECT_EQ(server_of_test().gauges().opens, 1U);
}

}  // namespace
}  // namespace sluice::smb_simulation
