#include "sluice/smb/server/command/command_testing.hpp"

// Connections from addresses that the server denies.

namespace sluice::smb_simulation {
namespace {

class denied_hosts : public command_test {
protected:
    [[nodiscard]] static io::socket_address address(std::string_view text) {
        return io::socket_address::ip(text, 1).value();
    }
    void deny(std::string_view network) {
        server_of_test().replace_host_rules(
            {.allowed = {}, .denied = {server::ip_network::parse(network).value()}});
    }
    [[nodiscard]] std::uint64_t denied() { return server_of_test().context().hosts.denied(); }
};

TEST_F(denied_hosts, are_not_served_and_are_counted) {
    deny("10.0.0.0/8");
    const std::size_t before = server_of_test().gauges().connections;
    const io::socket_handle refused = where_.connect(address("10.1.2.3"));
    where_.run();
    EXPECT_EQ(server_of_test().gauges().connections, before);
    EXPECT_EQ(denied(), 1U);
    compliant_client other(where_, address("11.1.2.3"));
    EXPECT_EQ(other.log_on("u", "p"), nt_status::success);
    EXPECT_EQ(denied(), 1U);
}

TEST_F(denied_hosts, lose_the_connections_that_they_have) {
    compliant_client early(where_, address("10.1.2.3"));
    ASSERT_EQ(early.log_on("u", "p"), nt_status::success);
    const std::size_t before = server_of_test().gauges().sessions;
    deny("10.0.0.0/8");
    where_.run();
    EXPECT_EQ(server_of_test().gauges().sessions, before - 1);
    EXPECT_EQ(denied(), 1U);
    const wire::file_id file = open_for(wire::file_all_access);
    EXPECT_EQ(close(file), nt_status::success) << "others are served as before";
}

TEST_F(denied_hosts, may_connect_again_after_the_rule_is_removed) {
    deny("10.0.0.0/8");
    server_of_test().replace_host_rules({});
    compliant_client again(where_, address("10.1.2.3"));
    EXPECT_EQ(again.log_on("u", "p"), nt_status::success);
}

}  // namespace
}  // namespace sluice::smb_simulation
