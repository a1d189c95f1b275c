#include "sluice/smb/server/command/info/file_information.hpp"

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/smb/wire/fscc/fscc_file_metadata.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/fscc/fscc_pipe_information.hpp"

// The classes of [MS-FSCC] 2.4 that QUERY_INFO reports.

namespace sluice::smb_simulation {
namespace {

using wire::file_information_class;

class file_information : public command_test {
protected:
    bytes_view ask(const wire::file_id& file, file_information_class what) {
        said_ = query(file, what);
        EXPECT_EQ(said_.status(), nt_status::success) << static_cast<unsigned>(what);
        return output_of(said_);
    }

private:
    compliant_client::answer said_;
};

TEST_F(file_information, counts_the_bytes_and_the_names_of_a_file) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(write(file, "0123456789"), nt_status::success);
    const auto information =
        wire::decode_standard_information(ask(file, file_information_class::standard)).value();
    EXPECT_EQ(information.end_of_file, 10U);
    EXPECT_EQ(information.links, 1U);
    EXPECT_FALSE(information.directory);
    EXPECT_FALSE(information.delete_pending);
}

TEST_F(file_information, counts_no_name_of_a_file_in_delete_pending_state) {
    const wire::file_id file = open_for(wire::file_all_access);
    ASSERT_EQ(set_information(file, file_information_class::disposition,
                              wire::disposition_information{.delete_on_close = true}),
              nt_status::success);
    const auto information =
        wire::decode_standard_information(ask(file, file_information_class::standard)).value();
    EXPECT_EQ(information.links, 0U);
    EXPECT_TRUE(information.delete_pending);
}

TEST_F(file_information, has_no_size_for_a_directory) {
    const auto information =
        wire::decode_standard_information(ask(open_directory(), file_information_class::standard)).value();
    EXPECT_TRUE(information.directory);
    EXPECT_EQ(information.end_of_file, 0U);
    EXPECT_EQ(information.links, 1U);
}

TEST_F(file_information, reports_the_rights_that_the_open_was_granted) {
    const wire::file_id file = open_for(access_mask::read_data | access_mask::read_attributes);
    const auto information =
        wire::decode_access_information(ask(file, file_information_class::access)).value();
    EXPECT_EQ(information.granted, access_mask::read_data | access_mask::read_attributes);
}

TEST_F(file_information, gives_each_file_a_number_of_its_own) {
    const auto number = [&](std::string_view name) {
        const wire::file_id file = open_for(wire::file_all_access, name);
        return wire::decode_internal_information(ask(file, file_information_class::internal))->file_number;
    };
    EXPECT_NE(number("a"), number("b"));
    EXPECT_EQ(number("a"), number("a"));
}

TEST_F(file_information, lists_the_unnamed_stream_of_a_file_and_none_of_a_directory) {
    EXPECT_FALSE(ask(open_for(wire::file_all_access), file_information_class::stream).empty());
    EXPECT_TRUE(ask(open_directory(), file_information_class::stream).empty());
}

// [MS-FSA] 2.1.5.12.29 lists the streams of Open.File, whichever of them is open.
TEST_F(file_information, lists_all_streams_of_a_file_through_the_handle_of_one) {
    const wire::file_id file = open_for(wire::file_all_access, "f");
    ASSERT_EQ(write(file, "main"), nt_status::success);
    const wire::file_id stream = open_for(wire::file_all_access, "f:s");
    ASSERT_EQ(write(stream, "a stream"), nt_status::success);
    wire::stream_list_reader reader{ask(stream, file_information_class::stream)};
    EXPECT_EQ((*reader.next())->size_bytes, 4U);
    EXPECT_EQ((*reader.next())->size_bytes, 8U);
    EXPECT_FALSE(*reader.next());
}

TEST_F(file_information, lists_as_many_streams_as_a_client_has_room_for) {
    const wire::file_id file = open_for(wire::file_all_access, "f");
    const std::string name(200, 'n');
    for (int i = 0; i != 300; ++i)
        EXPECT_EQ(close(open_for(wire::file_all_access, "f:" + name + std::to_string(i))),
                  nt_status::success);
    client().charge = 8;
    const auto said = query(file, file_information_class::stream, 512U << 10);
    ASSERT_EQ(said.status(), nt_status::success);
    wire::stream_list_reader reader{output_of(said)};
    unsigned found = 0;
    while (*reader.next())
        ++found;
    EXPECT_EQ(found, 301U);
}

TEST_F(file_information, reports_a_file_without_extended_attributes) {
    EXPECT_EQ(query(open_for(wire::file_all_access), file_information_class::full_ea).status(),
              nt_status::no_eas_on_file);
}

TEST_F(file_information, reports_the_state_of_a_pipe) {
    const wire::file_id pipe = open_pipe();
    EXPECT_EQ(wire::decode_pipe_local_information(ask(pipe, file_information_class::pipe_local))->state, 3U)
        << "connected";
    EXPECT_TRUE(wire::decode_pipe_information(ask(pipe, file_information_class::pipe)));
}

}  // namespace
}  // namespace sluice::smb_simulation
