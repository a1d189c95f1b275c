#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

// SESSION_SETUP ([MS-SMB2] 3.3.5.5): logon as a user and anonymously, and the lifetime of sessions.
// See also reauthentication_test.cpp.

namespace sluice::smb_simulation {
namespace {

using smb::server::protection;
using smb::server::server_configuration;
using smb::wire::command;
using smb::wire::nt_status;
using smb::wire::session_flags;

class log_on : public testing::Test {
protected:
    void TearDown() override {
        for (const auto& one : worlds)
            one->stop();
    }

    world& serve(void (*adjust)(server_configuration&) = nullptr) {
        worlds.push_back(std::make_unique<world>(io::simulation_options{.seed = 1}, 1, adjust));
        return *worlds.back();
    }

    static void allow_guests(server_configuration& rules) { rules.allows_guests = true; }
    static void expire_after_an_hour(server_configuration& rules) {
        rules.session_lifetime = std::chrono::hours(1);
    }
    static void encrypt_for_guests(server_configuration& rules) {
        rules.allows_guests = true;
        rules.encryption = protection::required;
    }

    std::vector<std::unique_ptr<world>> worlds;
};

TEST_F(log_on, anonymously_is_refused_unless_guests_are_allowed) {
    compliant_client client(serve());
    EXPECT_EQ(client.log_on("", ""), nt_status::access_denied);
}

TEST_F(log_on, anonymously_is_not_counted_as_a_wrong_password) {
    world& where = serve();
    for (int i = 0; i != 20; ++i) {
        compliant_client prober(where);
        EXPECT_EQ(prober.log_on("", ""), nt_status::access_denied);
    }
    EXPECT_EQ(where.server->context().logons.addresses(), 0U);
    const auto before = where.clock.steady_now();
    compliant_client client(where);
    EXPECT_EQ(client.log_on("u", "p"), nt_status::success);
    EXPECT_LT(where.clock.steady_now() - before, std::chrono::milliseconds(50));
}

TEST_F(log_on, anonymously_gives_access_to_the_files_where_guests_are_allowed) {
    compliant_client client(serve(allow_guests));
    ASSERT_EQ(client.log_on("", ""), nt_status::success);
    EXPECT_EQ(client.session_flags(), session_flags::anonymous);
    EXPECT_EQ(client.connect_tree("files"), nt_status::success);
}

// Without a key nothing can be encrypted.
TEST_F(log_on, anonymously_is_refused_where_everything_is_encrypted) {
    compliant_client client(serve(encrypt_for_guests));
    EXPECT_EQ(client.log_on("", ""), nt_status::access_denied);
}

TEST_F(log_on, that_fails_in_a_session_ends_it_and_what_it_waits_for) {
    compliant_client client(serve());
    ASSERT_EQ(client.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(client.connect_tree("files"), nt_status::success);
    auto how = compliant_client::for_everything();
    how.options = smb::wire::create_options::directory_file;
    const auto directory = client.create("d", how);
    const std::uint64_t watching = client.send(
        command::change_notify,
        smb::wire::change_notify_args{
            .output_bytes_max = 1000, .file = directory.file, .filter = smb::wire::completion_filter(0xfff)});
    EXPECT_EQ(client.log_on("u", "wrong"), nt_status::logon_failure);
    EXPECT_EQ(client.answer_to(watching).status(), nt_status::notify_cleanup);
    EXPECT_EQ(client.connect_tree("files"), nt_status::user_session_deleted);
}

TEST_F(log_on, lasts_as_long_as_it_may_and_then_has_to_be_done_again) {
    world& serving = serve(expire_after_an_hour);
    compliant_client client(serving);
    ASSERT_EQ(client.log_on("u", "p"), nt_status::success);
    ASSERT_EQ(client.connect_tree("files"), nt_status::success);
    const auto file = client.create("a");
    const smb::wire::read_args reading{.file = file.file, .length_bytes = 1};
    EXPECT_EQ(client.call(command::read, reading).status(), nt_status::end_of_file);
    serving.run();  // until nothing is left to wait for: the hour is over
    EXPECT_EQ(client.call(command::read, reading).status(), nt_status::network_session_expired);
    EXPECT_EQ(client.call(command::echo, smb::wire::echo_args{}).status(), nt_status::success);
    EXPECT_EQ(client.log_on("u", "p"), nt_status::success);
    EXPECT_EQ(client.call(command::read, reading).status(), nt_status::end_of_file) << "open files stay open";
}

}  // namespace
}  // namespace sluice::smb_simulation
