#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/utf16.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// The dependencies between a file and its streams.

namespace sluice::smb_simulation {
namespace {

using smb::wire::command;
using smb::wire::create_disposition;
using smb::wire::create_options;
using smb::wire::nt_status;

class streams : public served {
protected:
    nt_status try_create(std::string_view name, smb::wire::create_args how) {
        const std::string spelled = smb::wire::utf16_of(name).value();
        how.name = std::as_bytes(std::span(spelled));
        return client().call(command::create, how).status();
    }
    nt_status close(const smb::wire::create_reply& one) {
        return client().call(command::close, smb::wire::close_args{.file = one.file}).status();
    }
    nt_status rename(const smb::wire::create_reply& one, const std::string& target, bool replaces) {
        std::array<std::byte, 128> room;
        byte_writer writer(room);
        EXPECT_TRUE(
            encode(writer, smb::wire::rename_information{.replace_if_exists = replaces, .target = target}));
        const smb::wire::set_info_args asked{
            .type = smb::wire::info_type::file,
            .information_class = static_cast<std::uint8_t>(smb::wire::file_information_class::rename),
            .file = one.file,
            .input = *writer.finish()};
        return client().call(command::set_info, asked).status();
    }
    // A CREATE for a lease that caches reads and the handle.
    static smb::wire::create_args leased(smb::wire::share_access share) {
        auto how = compliant_client::for_everything();
        how.share_access = share;
        how.desired_access = smb::wire::file_generic_read;
        how.oplock_level = smb::wire::oplock_level::lease;
        how.contexts.lease.emplace(smb::wire::lease{
            .key = {}, .state = smb::wire::lease_state::read | smb::wire::lease_state::handle});
        how.contexts.lease->key.bytes[0] = std::byte{1};
        return how;
    }
    std::unique_ptr<compliant_client> other_client() {
        auto other = std::make_unique<compliant_client>(where_, 2);
        EXPECT_EQ(other->log_on("u", "p"), nt_status::success);
        EXPECT_EQ(other->connect_tree("files"), nt_status::success);
        return other;
    }
    bool has_break() { return client().is_answered(smb::wire::notification_message_id); }
    static smb::wire::create_args opening() {
        auto how = compliant_client::for_everything();
        how.disposition = create_disposition::open;
        return how;
    }
};

TEST_F(streams, are_created_on_a_directory_and_are_not_directories) {
    auto how = compliant_client::for_everything();
    how.options = create_options::directory_file;
    EXPECT_EQ(close(client().create("d", how)), nt_status::success);
    EXPECT_EQ(try_create("d:stream", how), nt_status::not_a_directory);
    EXPECT_EQ(close(client().create("d:stream")), nt_status::success);
    EXPECT_EQ(close(client().create("d:stream", opening())), nt_status::success);
}

TEST_F(streams, that_are_open_keep_their_removed_file_until_the_last_of_them_closes) {
    const auto first = client().create("f:first");
    const auto second = client().create("f:second");
    auto how = opening();
    how.options = create_options::delete_on_close;
    EXPECT_EQ(close(client().create("f", how)), nt_status::success);
    EXPECT_EQ(try_create("f", opening()), nt_status::delete_pending);
    EXPECT_EQ(try_create("f:first", opening()), nt_status::delete_pending);
    EXPECT_EQ(close(first), nt_status::success);
    EXPECT_EQ(try_create("f", opening()), nt_status::delete_pending);
    EXPECT_EQ(close(second), nt_status::success);
    EXPECT_EQ(try_create("f", opening()), nt_status::object_name_not_found);
}

TEST_F(streams, that_deny_deletion_are_not_created_or_opened_while_their_file_is_open_for_deletion) {
    EXPECT_EQ(close(client().create("f:old")), nt_status::success);
    const auto file = client().create("f", opening());
    auto how = compliant_client::for_everything();
    how.share_access = smb::wire::share_access::read;
    EXPECT_EQ(try_create("f:old", how), nt_status::sharing_violation);
    EXPECT_EQ(try_create("f:new", how), nt_status::sharing_violation);
    EXPECT_EQ(try_create("f:new", opening()), nt_status::object_name_not_found) << "nothing was created";
    EXPECT_EQ(close(file), nt_status::success);
    EXPECT_EQ(close(client().create("f:new", how)), nt_status::success);
}

TEST_F(streams, that_are_open_are_not_replaced_by_others) {
    const auto first = client().create("f:first");
    const auto second = client().create("f:second");
    EXPECT_EQ(rename(first, ":second", true), nt_status::access_denied);
    EXPECT_EQ(rename(first, ":SECOND:$DATA", true), nt_status::access_denied);
    EXPECT_EQ(rename(first, ":second", false), nt_status::object_name_collision);
    EXPECT_EQ(rename(second, ":third", true), nt_status::success);
    EXPECT_EQ(rename(first, ":second", true), nt_status::success) << "the name is free again";
    EXPECT_EQ(rename(first, ":Second", true), nt_status::success) << "its own name, in another case";
    EXPECT_EQ(close(second), nt_status::success);
    EXPECT_EQ(rename(first, ":third", true), nt_status::success) << "the target has no opens";
    EXPECT_EQ(try_create("f:second", opening()), nt_status::object_name_not_found);
    EXPECT_EQ(try_create("f:third", opening()), nt_status::success);
}

TEST_F(streams, that_are_renamed_keep_all_their_opens) {
    const auto first = client().create("f:first");
    const auto again = client().create("f:first", opening());
    EXPECT_EQ(rename(first, ":second", false), nt_status::success);
    auto alone = compliant_client::for_everything();
    alone.share_access = smb::wire::share_access::none;
    EXPECT_EQ(try_create("f:first", alone), nt_status::success) << "a new stream has the old name now";
    EXPECT_EQ(rename(again, ":third", false), nt_status::success);
    alone.disposition = create_disposition::open;
    EXPECT_EQ(try_create("f:third", alone), nt_status::sharing_violation);
}

TEST_F(streams, that_are_renamed_keep_their_lease) {
    auto leased = compliant_client::for_everything();
    leased.oplock_level = smb::wire::oplock_level::lease;
    leased.contexts.lease.emplace(
        smb::wire::lease{.key = {}, .state = smb::wire::lease_state::read | smb::wire::lease_state::handle});
    leased.contexts.lease->key.bytes[0] = std::byte{1};
    const auto first = client().create("f:first", leased);
    ASSERT_EQ(rename(first, ":second", false), nt_status::success);
    EXPECT_EQ(try_create("f:second", leased), nt_status::success);
    EXPECT_EQ(try_create("f:first", leased), nt_status::invalid_parameter) << "another stream";
    EXPECT_EQ(close(client().create("f:first")), nt_status::success);
    EXPECT_EQ(try_create("f:first", leased), nt_status::invalid_parameter);
}

// A sharing violation breaks the handle caching of the stream that is opened: OPEN_BREAK_H of
// Open.Stream.Oplock ([MS-FSA] 2.1.5.1.2).
TEST_F(streams, whose_sharing_is_violated_wait_for_the_holder_of_a_lease_to_close_them) {
    const auto held = client().create("f:first", leased(smb::wire::share_access::none));
    const auto other = other_client();
    const std::uint64_t waiting = other->send_create("f:first", opening());
    EXPECT_TRUE(has_break());
    EXPECT_EQ(close(held), nt_status::success);
    EXPECT_EQ(other->answer_to(waiting).status(), nt_status::success);
}

TEST_F(streams, whose_sharing_is_violated_wait_for_the_holder_of_a_batch_oplock_to_close_them) {
    auto how = compliant_client::for_everything();
    how.share_access = smb::wire::share_access::none;
    how.oplock_level = smb::wire::oplock_level::batch;
    const auto held = client().create("f:first", how);
    ASSERT_EQ(held.oplock_level, smb::wire::oplock_level::batch);
    const auto other = other_client();
    const std::uint64_t waiting = other->send_create("f:first", opening());
    EXPECT_TRUE(has_break());
    EXPECT_EQ(close(held), nt_status::success);
    EXPECT_EQ(other->answer_to(waiting).status(), nt_status::success);
}

// The oplocks of other streams stay, also if an open of them is what conflicts.
TEST_F(streams, that_deny_deletion_keep_their_lease_when_their_file_is_opened_for_deletion) {
    const auto held = client().create("f:first", leased(smb::wire::share_access::read));
    const auto other = other_client();
    EXPECT_EQ(other->try_create("f", opening()), nt_status::sharing_violation);
    EXPECT_FALSE(has_break());
    EXPECT_EQ(close(held), nt_status::success);
    EXPECT_EQ(other->try_create("f", opening()), nt_status::success);
}

TEST_F(streams, that_deny_deletion_leave_the_lease_of_a_file_that_is_open_for_deletion) {
    auto how = leased(compliant_client::for_everything().share_access);
    how.desired_access = smb::wire::file_generic_read | smb::wire::access_mask::delete_object;
    const auto held = client().create("f", how);
    EXPECT_EQ(close(client().create("f:first")), nt_status::success);
    const auto other = other_client();
    auto denying = opening();
    denying.share_access = smb::wire::share_access::read | smb::wire::share_access::write;
    EXPECT_EQ(other->try_create("f:first", denying), nt_status::sharing_violation);
    EXPECT_FALSE(has_break());
    EXPECT_EQ(close(held), nt_status::success);
    EXPECT_EQ(other->try_create("f:first", denying), nt_status::success);
}

// The conflict is with a stream, and the lease is one of the file that is opened: it is broken.
TEST_F(streams, that_deny_deletion_do_not_keep_the_lease_of_their_file_from_being_broken) {
    const auto denying = leased(smb::wire::share_access::read);
    auto plain = denying;
    plain.oplock_level = smb::wire::oplock_level::none;
    plain.contexts.lease.reset();
    const auto stream = client().create("f:first", plain);
    (void)client().create("f", leased(compliant_client::for_everything().share_access));
    const auto other = other_client();
    const std::uint64_t waiting = other->send_create("f", opening());
    EXPECT_TRUE(has_break());
    EXPECT_EQ(other->answer_to(waiting).status(), nt_status::sharing_violation);
    EXPECT_EQ(close(stream), nt_status::success);
}

TEST_F(streams, are_never_directories) {
    auto how = compliant_client::for_everything();
    how.options = create_options::directory_file;
    EXPECT_EQ(close(client().create("d", how)), nt_status::success);
    EXPECT_EQ(try_create("d::$DATA", how), nt_status::not_a_directory);
    EXPECT_EQ(try_create("f:stream", how), nt_status::not_a_directory);
    EXPECT_EQ(try_create("d::$DATA", opening()), nt_status::file_is_a_directory);
}

TEST_F(streams, are_listed_as_far_as_the_buffer_has_room) {
    const auto file = client().create("f");
    const auto asked = [&](std::uint32_t bytes_max) {
        const smb::wire::query_info_args question{.information_class = 22,  // FileStreamInformation
                                                  .output_bytes_max = bytes_max,
                                                  .file = file.file};
        return client().call(command::query_info, question).status();
    };
    EXPECT_EQ(asked(31), nt_status::info_length_mismatch);
    EXPECT_EQ(asked(32), nt_status::buffer_overflow);
    EXPECT_EQ(asked(37), nt_status::buffer_overflow);
    EXPECT_EQ(asked(38), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
