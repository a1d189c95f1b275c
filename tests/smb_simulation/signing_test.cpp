#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// The signatures of replies: see docs/formats/smb2-signing.md. Signatures with AES-GMAC are tested
// in tests/smb_client/protection_test.cpp.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::header_flags;
using wire::nt_status;

class signatures : public testing::Test {
protected:
    signatures()
        : where_(io::simulation_options{.seed = 1}, 1,
                 [](server::server_configuration& c) { c.signing = server::protection::required; }) {
        EXPECT_EQ(first_.emplace(where_).log_on("u", "p"), nt_status::success);
    }
    ~signatures() override {
        first_.reset();
        where_.stop();
    }
    [[nodiscard]] compliant_client& client() noexcept { return *first_; }

    [[nodiscard]] static bool has_signed_flag(const compliant_client::answer& said) {
        return wire::has(said.message().header().flags, header_flags::signed_message);
    }
    [[nodiscard]] static bool has_signature_of(const compliant_client::answer& said,
                                               const std::vector<std::byte>& frame) {
        const auto sent = wire::decode_header(*bytes_view(frame).from(wire::frame_prefix_bytes));
        return said.message().header().signature == sent->signature;
    }

    world where_;
    std::optional<compliant_client> first_;
};

class signed_client : public signatures {
protected:
    signed_client() {
        client().sign(true);
        EXPECT_EQ(client().connect_tree("files"), nt_status::success);
    }
};

TEST_F(signed_client, gets_signed_replies_but_never_a_signed_interim_reply) {
    auto how = compliant_client::for_everything();
    how.options = wire::create_options::directory_file;
    const auto directory = client().create("d", how);
    const std::uint64_t watching = client().send(
        command::change_notify,
        wire::change_notify_args{
            .output_bytes_max = 1000, .file = directory.file, .filter = wire::completion_filter(0xfff)});
    const wire::header interim = client().interim_of(watching);
    EXPECT_FALSE(wire::has(interim.flags, header_flags::signed_message));
    EXPECT_EQ(interim.signature, wire::message_signature{});
    const auto closed = client().call(command::close, wire::close_args{.file = directory.file});
    EXPECT_TRUE(has_signed_flag(closed) and client().is_signed_by_key(closed));
    const auto last = client().answer_to(watching);
    EXPECT_EQ(last.status(), nt_status::notify_cleanup);
    EXPECT_TRUE(has_signed_flag(last) and client().is_signed_by_key(last));
}

TEST_F(signed_client, gets_no_signature_for_a_copy_of_its_request_on_another_connection) {
    const auto said = client().call(command::echo, wire::echo_args{});
    ASSERT_TRUE(client().is_signed_by_key(said));
    compliant_client attacker(where_);
    for (const bool is_setup : {false, true}) {
        SCOPED_TRACE(is_setup);
        if (is_setup) {
            const std::vector<std::byte> token(8);
            (void)client().call(command::session_setup, wire::session_setup_args{.security_blob = token});
        } else {
            ASSERT_EQ(client().connect_tree("files"), nt_status::success);
        }
        const auto copied = client().last_sent();
        const auto answered = attacker.answer_to(attacker.send_copy(copied));
        EXPECT_EQ(answered.status(), nt_status::user_session_deleted);
        EXPECT_FALSE(client().is_signed_by_key(answered));
        EXPECT_TRUE(has_signed_flag(answered) and has_signature_of(answered, copied)) << "like Windows";
    }
}

TEST_F(signed_client, gets_no_signed_reply_to_a_wrong_signature) {
    auto frame = [&] {
        client().send(command::echo, wire::echo_args{});
        return client().last_sent();
    }();
    frame.back() ^= std::byte{1};
    const auto header = wire::decode_header(*bytes_view(frame).from(wire::frame_prefix_bytes));
    const le64 next_id(header->message_id + 1);
    std::memcpy(frame.data() + wire::frame_prefix_bytes + 24, &next_id, sizeof next_id);
    const auto answered = client().answer_to(client().send_copy(frame));
    EXPECT_EQ(answered.status(), nt_status::access_denied);
    EXPECT_FALSE(client().is_signed_by_key(answered));
}

TEST_F(signed_client, that_has_logged_off_gets_a_reply_signed_with_its_key) {
    const auto left = client().call(command::logoff, wire::logoff_args{});
    EXPECT_TRUE(client().is_signed_by_key(left));
    const auto late = client().call(command::echo, wire::echo_args{});
    EXPECT_EQ(late.status(), nt_status::success) << "it requires no session";
    const auto later = client().call(command::close, wire::close_args{});
    EXPECT_EQ(later.status(), nt_status::user_session_deleted);
    EXPECT_TRUE(has_signed_flag(later) and client().is_signed_by_key(later));
}

TEST_F(signed_client, whose_session_was_ended_on_another_channel_gets_a_reply_signed_with_its_own_key) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(client(), "u", "p"), nt_status::success);
    second.sign(true);
    EXPECT_EQ(client().call(command::logoff, wire::logoff_args{}).status(), nt_status::success);
    const auto later = second.call(command::close, wire::close_args{});
    EXPECT_EQ(later.status(), nt_status::user_session_deleted);
    EXPECT_TRUE(second.is_signed_by_key(later));
    EXPECT_FALSE(client().is_signed_by_key(later));
}

TEST_F(signed_client, gets_the_first_rejected_element_of_a_related_compound_with_its_own_signature) {
    client().flags = header_flags::related;
    const std::uint64_t id = client().send(command::close, wire::close_args{});
    client().flags = header_flags::none;
    const auto frame = client().last_sent();
    const auto said = client().answer_to(id);
    EXPECT_EQ(said.status(), nt_status::invalid_parameter);
    EXPECT_TRUE(has_signed_flag(said) and has_signature_of(said, frame));
}

// The exception of [MS-SMB2] 3.3.4.1.1: the key is that of the session, although the connection is
// another.
TEST_F(signed_client, has_the_first_reply_to_a_binding_signed_with_the_sessions_key) {
    compliant_client second(where_);
    EXPECT_EQ(second.bind_to(client(), "u", "wrong"), nt_status::logon_failure);
    EXPECT_TRUE(client().is_signed_by_key(second.last_answer())) << "its refusal is signed with it, too";
}

TEST_F(signed_client, gets_no_channel_by_the_copy_of_a_binding) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(client(), "u", "p"), nt_status::success);
    compliant_client attacker(where_);
    const auto first = attacker.answer_to(attacker.send_copy(second.first_of_authentication()));
    EXPECT_EQ(first.status(), nt_status::more_processing_required);
    const auto last = attacker.answer_to(attacker.send_copy(second.last_sent()));
    EXPECT_EQ(last.status(), nt_status::logon_failure) << "the challenge was different";
    EXPECT_EQ(where_.server->context().quotas.in_use(server::limit::channels), 2U);
}

// The other exception: the request proves knowledge of the password.
TEST_F(signatures, end_a_session_setup_whose_requests_have_none) {
    compliant_client fresh(where_);
    EXPECT_EQ(fresh.log_on("u", "p"), nt_status::success);  // the client checks the signature of
                                                            // the last reply
    const auto said = fresh.call(command::close, wire::close_args{});
    EXPECT_EQ(said.status(), nt_status::access_denied);
    EXPECT_FALSE(has_signed_flag(said)) << "the request was not signed with the key";
}

}  // namespace
}  // namespace sluice::smb_simulation
