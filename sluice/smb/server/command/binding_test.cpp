#include "sluice/smb/wire/message/session_setup.hpp"

#include <memory>
#include <vector>

#include "sluice/smb/server/command/command_testing.hpp"

// SESSION_SETUP that binds a further connection to a session ([MS-SMB2] 3.3.5.5, 3.3.5.5.2).
// channels_test.cpp tests sessions that have several.

namespace sluice::smb_simulation {
namespace {

class bindings : public command_test {
protected:
    [[nodiscard]] static nt_status close(compliant_client& by, const wire::file_id& file) {
        return by.call(command::close, wire::close_args{.file = file}).status();
    }
};

TEST_F(bindings, are_for_the_sessions_own_user_alone) {
    const std::array both{server::user_database::admission{.name = "u", .password = "p"},
                          server::user_database::admission{.name = "v", .password = "q"}};
    ASSERT_TRUE(where_.users.admit(both));
    compliant_client second(where_);
    EXPECT_EQ(second.bind_to(*first_, "v", "q"), nt_status::access_denied);
    EXPECT_EQ(second.bind_to(*first_, "u", "wrong"), nt_status::logon_failure);
    const auto file = first_->create("f").file;
    EXPECT_EQ(close(second, file), nt_status::user_session_deleted) << "it has no channel of the session";
    EXPECT_EQ(close(*first_, file), nt_status::success) << "a failed binding does not end the session";
}

TEST_F(bindings, are_at_most_32) {
    std::vector<std::unique_ptr<compliant_client>> more;
    for (int i = 1; i != 32; ++i) {
        more.push_back(std::make_unique<compliant_client>(where_));
        ASSERT_EQ(more.back()->bind_to(*first_, "u", "p"), nt_status::success) << i;
    }
    {
        compliant_client too_many(where_);
        EXPECT_EQ(too_many.bind_to(*first_, "u", "p"), nt_status::insufficient_resources);
    }
    more.pop_back();
    compliant_client last(where_);
    EXPECT_EQ(last.bind_to(*first_, "u", "p"), nt_status::success);
}

TEST_F(bindings, begun_by_copies_of_a_binding_leave_room_for_those_of_the_client) {
    compliant_client second(where_);
    ASSERT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
    std::vector<std::unique_ptr<compliant_client>> copies;
    for (int i = 0; i != 40; ++i) {
        compliant_client& one = *copies.emplace_back(std::make_unique<compliant_client>(where_));
        (void)one.answer_to(one.send_copy(second.first_of_authentication()));
    }
    EXPECT_EQ(copies.front()->last_answer().status(), nt_status::more_processing_required);
    compliant_client third(where_);
    EXPECT_EQ(third.bind_to(*first_, "u", "p"), nt_status::success);
}

TEST_F(bindings, are_bound_once) {
    EXPECT_EQ(first_->bind_to(*first_, "u", "p"), nt_status::request_not_accepted);
}

TEST_F(bindings, are_refused_from_an_address_that_a_share_of_the_session_denies) {
    server::share_configuration rules = where_.server->context().find_share("files")->configuration();
    rules.hosts.denied = {server::ip_network::parse("10.0.0.9").value()};
    std::vector<server::share_configuration> shares{rules};
    where_.server->replace_shares(std::move(shares));
    ASSERT_EQ(first_->connect_tree("files"), nt_status::success);
    compliant_client denied(where_, io::socket_address::ip("10.0.0.9", 1).value());
    EXPECT_EQ(denied.bind_to(*first_, "u", "p"), nt_status::request_not_accepted);
    const auto file = first_->create("f").file;
    EXPECT_EQ(close(denied, file), nt_status::user_session_deleted) << "it has no channel of the session";
    compliant_client second(where_, io::socket_address::ip("10.0.0.8", 1).value());
    EXPECT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
    EXPECT_EQ(close(second, file), nt_status::success);
}

TEST_F(bindings, are_refused_from_an_address_that_a_reload_denies_for_a_share_in_use) {
    server::share_configuration rules = where_.server->context().find_share("files")->configuration();
    ASSERT_EQ(first_->connect_tree("files"), nt_status::success);
    rules.hosts.denied = {server::ip_network::parse("10.0.0.9").value()};
    std::vector<server::share_configuration> shares{rules};
    where_.server->replace_shares(std::move(shares));
    compliant_client denied(where_, io::socket_address::ip("10.0.0.9", 1).value());
    EXPECT_EQ(denied.bind_to(*first_, "u", "p"), nt_status::request_not_accepted);
    compliant_client second(where_, io::socket_address::ip("10.0.0.8", 1).value());
    EXPECT_EQ(second.bind_to(*first_, "u", "p"), nt_status::success);
}

TEST_F(bindings, need_the_signature_of_the_session_key) {
    const std::string first = "no token";
    compliant_client second(where_);
    second.use_ids(first_->current_ids());
    const wire::session_setup_args asked{.flags = wire::session_setup_flags::binding,
                                         .security_blob = std::as_bytes(std::span(first))};
    EXPECT_EQ(second.call(command::session_setup, asked).status(), nt_status::invalid_parameter);
}

TEST_F(bindings, are_refused_for_a_session_that_does_not_exist) {
    compliant_client second(where_);
    second.use_ids({.session = 4711, .tree = 0});
    EXPECT_EQ(second
                  .call(command::session_setup,
                        wire::session_setup_args{.flags = wire::session_setup_flags::binding})
                  .status(),
              nt_status::user_session_deleted);
}

}  // namespace
}  // namespace sluice::smb_simulation
