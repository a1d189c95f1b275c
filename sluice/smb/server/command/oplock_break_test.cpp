#include "sluice/smb/wire/file/oplock_break.hpp"

#include "sluice/smb/server/command/command_testing.hpp"

// Acknowledgements of breaks ([MS-SMB2] 3.3.5.22): those of no break are refused.

namespace sluice::smb_simulation {
namespace {

using wire::lease_state;
using wire::oplock_level;

class oplock_break_command : public command_test {
protected:
    [[nodiscard]] wire::file_id open_with_oplock() {
        auto how = compliant_client::for_everything();
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

TEST_F(oplock_break_command, is_refused_without_a_break) {
    EXPECT_EQ(acknowledge(open_with_oplock(), oplock_level::none), nt_status::invalid_oplock_protocol);
    EXPECT_EQ(acknowledge(open_for(wire::file_all_access, "g"), oplock_level::none),
              nt_status::invalid_oplock_protocol)
        << "it has no oplock";
}

TEST_F(oplock_break_command, is_refused_for_an_open_that_has_ended) {
    EXPECT_EQ(acknowledge(closed_file(), oplock_level::none), nt_status::file_closed);
}

TEST_F(oplock_break_command, is_refused_for_an_oplock_if_it_names_a_lease) {
    EXPECT_EQ(acknowledge(open_with_oplock(), oplock_level::lease), nt_status::invalid_parameter);
}

TEST_F(oplock_break_command, is_refused_for_a_lease_that_does_not_exist) {
    EXPECT_EQ(status_of(command::oplock_break, wire::oplock_break_args{wire::lease_break{}}),
              nt_status::object_name_not_found);
}

TEST_F(oplock_break_command, is_answered_with_the_level_that_it_acknowledges) {
    const wire::file_id file = open_with_oplock();
    compliant_client other(where_, 2);
    ASSERT_EQ(other.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(other.connect_tree("files"), nt_status::success);
    const std::uint64_t opening = other.send_create("f");
    ASSERT_EQ(client().answer_to(wire::notification_message_id).message().header().command,
              command::oplock_break);
    const auto said = client().call(
        command::oplock_break,
        wire::oplock_break_args{wire::oplock_break{.oplock_level = oplock_level::level_2, .file = file}});
    ASSERT_EQ(said.status(), nt_status::success);
    const auto reply = wire::decode_oplock_break_reply(said.message()).value();
    EXPECT_EQ(std::get<wire::oplock_break>(reply.sent).oplock_level, oplock_level::level_2);
    EXPECT_EQ(other.answer_to(opening).status(), nt_status::success);
}

// Two clients with leases of everything.
class two_leases : public command_test {
protected:
    two_leases() : other_(where_, 2) { where_.admit(std::vector<std::string>{"u", "v"}); }

    static constexpr auto all = lease_state::read | lease_state::write | lease_state::handle;
    static wire::create_args with_key(std::byte key) {
        auto how = compliant_client::for_everything();
        how.oplock_level = oplock_level::lease;
        how.contexts.lease = wire::lease{.key = {}, .state = all};
        how.contexts.lease->key.bytes[0] = key;
        return how;
    }
    void log_on_as(const std::string& user) {
        ASSERT_EQ(other_.log_on(user, "p"), nt_status::success);
        ASSERT_EQ(other_.connect_tree("files"), nt_status::success);
    }
    nt_status write_by(compliant_client& by, const wire::file_id& file) {
        static constexpr std::array<std::byte, 4> some{};
        return by.call(command::write, wire::write_args{.file = file, .data = some}).status();
    }

    compliant_client other_;
};

TEST_F(two_leases, with_one_key_and_user_share_a_cache) {
    log_on_as("u");
    const auto first = client().create("f", with_key(std::byte{1}));
    const auto second = other_.create("f", with_key(std::byte{1}));
    EXPECT_EQ(first.contexts.lease->state, all);
    EXPECT_EQ(second.contexts.lease->state, all);
    EXPECT_EQ(write_by(client(), first.file), nt_status::success);
    EXPECT_EQ(write_by(other_, second.file), nt_status::success);
    EXPECT_FALSE(client().is_answered(wire::notification_message_id)) << "there is no break";
    EXPECT_FALSE(other_.is_answered(wire::notification_message_id)) << "there is no break";
}

TEST_F(two_leases, with_one_key_and_user_are_both_broken_by_another_open) {
    log_on_as("u");
    (void)client().create("f", with_key(std::byte{1}));
    (void)other_.create("f", with_key(std::byte{1}));
    compliant_client third(where_, 3);
    ASSERT_EQ(third.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(third.connect_tree("files"), nt_status::success);
    (void)third.send_create("f");
    EXPECT_EQ(client().answer_to(wire::notification_message_id).message().header().command,
              command::oplock_break);
    EXPECT_EQ(other_.answer_to(wire::notification_message_id).message().header().command,
              command::oplock_break);
}

TEST_F(two_leases, with_one_key_and_two_users_conflict) {
    log_on_as("v");
    (void)client().create("f", with_key(std::byte{1}));
    (void)other_.send_create("f", with_key(std::byte{1}));
    EXPECT_EQ(client().answer_to(wire::notification_message_id).message().header().command,
              command::oplock_break);
}

TEST_F(two_leases, conflict_if_two_users_have_one_of_them) {
    log_on_as("u");
    (void)client().create("f", with_key(std::byte{1}));
    compliant_client same_client(where_);
    ASSERT_EQ(same_client.log_on("v", "p"), nt_status::success);
    ASSERT_EQ(same_client.connect_tree("files"), nt_status::success);
    (void)same_client.create("f", with_key(std::byte{1}));
    (void)other_.send_create("f", with_key(std::byte{1}));
    EXPECT_EQ(client().answer_to(wire::notification_message_id).message().header().command,
              command::oplock_break);
}

TEST_F(two_leases, with_two_keys_conflict) {
    log_on_as("u");
    (void)client().create("f", with_key(std::byte{1}));
    (void)other_.send_create("f", with_key(std::byte{2}));
    EXPECT_EQ(client().answer_to(wire::notification_message_id).message().header().command,
              command::oplock_break);
}

// The holder of a lease, of which one client wants a part and another wants all.
class stepwise_break : public oplock_break_command {
protected:
    stepwise_break() : other_(where_, 2) {
        auto how = compliant_client::for_everything();
        how.oplock_level = oplock_level::lease;
        how.contexts.lease =
            wire::lease{.key = key, .state = lease_state::read | lease_state::write | lease_state::handle};
        EXPECT_EQ(client().create("f", how).contexts.lease->state, how.contexts.lease->state);
        EXPECT_EQ(other_.log_on("u", "p"), nt_status::success);
        EXPECT_EQ(other_.connect_tree("files"), nt_status::success);
        opening_ = other_.send_create("f");
        EXPECT_EQ(next_notification().new_state, lease_state::read | lease_state::handle);
        auto overwriting = compliant_client::for_everything();
        overwriting.disposition = wire::create_disposition::overwrite;
        overwriting_ = other_.send_create("f", overwriting);
        EXPECT_FALSE(other_.is_answered(overwriting_));
    }
    wire::lease_break_notification next_notification() {
        const auto said = client().answer_to(wire::notification_message_id);
        return std::get<wire::lease_break_notification>(
            wire::decode_oplock_break_reply(said.message()).value().sent);
    }
    std::uint64_t send_answer(lease_state kept) {
        return client().send(command::oplock_break,
                             wire::oplock_break_args{wire::lease_break{.key = key, .state = kept}});
    }

    static constexpr wire::lease_key key{{std::byte{1}}};
    compliant_client other_;
    std::uint64_t opening_ = 0;
    std::uint64_t overwriting_ = 0;
};

TEST_F(stepwise_break, refuses_an_answer_to_a_step_before_the_client_is_notified_of_it) {
    client().begin_compound();
    const std::uint64_t first = send_answer(lease_state::read | lease_state::handle);
    const std::uint64_t in_advance = send_answer(lease_state::read);
    client().end_compound();
    EXPECT_EQ(client().answer_to(first).status(), nt_status::success);
    EXPECT_EQ(client().answer_to(in_advance).status(), nt_status::unsuccessful);
    EXPECT_EQ(next_notification().new_state, lease_state::read);
    EXPECT_EQ(client().answer_to(send_answer(lease_state::read)).status(), nt_status::success);
    EXPECT_EQ(next_notification().new_state, lease_state::none);
    EXPECT_EQ(other_.answer_to(opening_).status(), nt_status::success);
    EXPECT_EQ(other_.answer_to(overwriting_).status(), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
