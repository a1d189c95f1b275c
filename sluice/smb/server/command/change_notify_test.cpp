#include "sluice/smb/wire/file/change_notify.hpp"

#include <algorithm>
#include <array>
#include <ranges>

#include "sluice/smb/server/command/command_testing.hpp"
#include "sluice/smb/wire/fscc/fscc_notify.hpp"
#include "sluice/smb/wire/utf16.hpp"

// CHANGE_NOTIFY ([MS-SMB2] 3.3.5.19).

namespace sluice::smb_simulation {
namespace {

class change_notify_command : public command_test {
protected:
    std::uint64_t watch(const wire::file_id& directory, std::uint32_t output_bytes_max = 1000) {
        return client().send(command::change_notify,
                             wire::change_notify_args{.output_bytes_max = output_bytes_max,
                                                      .file = directory,
                                                      .filter = wire::completion_filter::file_name});
    }
    // The status of a reply that has the body of CHANGE_NOTIFY, but no changes. The body of an
    // error differs from it only in the offset of the buffer.
    nt_status outcome_without_changes(std::uint64_t request) {
        const auto said = client().answer_to(request);
        const std::array body{std::byte{9}, std::byte{}, std::byte{72}, std::byte{}, std::byte{},
                              std::byte{},  std::byte{}, std::byte{},   std::byte{}};
        EXPECT_TRUE(std::ranges::equal(said.bytes | std::views::drop(wire::header_bytes), body));
        return said.status();
    }
    nt_status outcome_of(std::uint64_t request) { return client().answer_to(request).status(); }
};

TEST_F(change_notify_command, waits_and_names_the_file_that_was_created) {
    const std::uint64_t watching = watch(open_directory());
    EXPECT_FALSE(client().is_answered(watching));
    (void)open_for(wire::file_all_access, "d\\new");
    const auto said = client().answer_to(watching);
    ASSERT_EQ(said.status(), nt_status::success);
    wire::notify_reader changes(wire::decode_change_notify_reply(said.message())->changes);
    const auto first = changes.next().value().value();
    EXPECT_EQ(first.action, wire::notify_action::added);
    EXPECT_EQ(wire::utf8_of(first.name_utf16).value(), "new");
}

TEST_F(change_notify_command, asks_to_list_the_directory_if_the_changes_do_not_fit) {
    const std::uint64_t watching = watch(open_directory(), 4);
    (void)open_for(wire::file_all_access, "d\\new");
    EXPECT_EQ(outcome_without_changes(watching), nt_status::notify_enum_dir);
}

TEST_F(change_notify_command, ends_with_its_open) {
    const wire::file_id directory = open_directory();
    const std::uint64_t watching = watch(directory);
    ASSERT_EQ(close(directory), nt_status::success);
    EXPECT_EQ(outcome_without_changes(watching), nt_status::notify_cleanup);
}

TEST_F(change_notify_command, can_be_cancelled) {
    const std::uint64_t watching = watch(open_directory());
    client().cancel(client().async_id_of(watching));
    EXPECT_EQ(outcome_of(watching), nt_status::cancelled);
}

TEST_F(change_notify_command, refuses_opens_that_cannot_be_watched) {
    EXPECT_EQ(outcome_of(watch(open_for(wire::file_all_access))), nt_status::invalid_parameter);
    EXPECT_EQ(outcome_of(watch(open_directory("d", access_mask::read_attributes))), nt_status::access_denied);
    EXPECT_EQ(outcome_of(watch(closed_file())), nt_status::file_closed);
}

TEST_F(change_notify_command, refuses_more_output_than_its_credits_pay_for) {
    EXPECT_EQ(outcome_of(watch(open_directory(), 65'537)), nt_status::invalid_parameter);
}

}  // namespace
}  // namespace sluice::smb_simulation
