#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/server/core/limits.hpp"
#include "tests/smb_simulation/clients/compliant_client.hpp"

namespace sluice::smb_simulation {

/// Tests of a server with a small amount of each shared resource, and the users "greedy" and
/// "honest". Each expects that the server forgets the clients that have ended.
class bounded_server : public testing::Test {
protected:
    static constexpr std::size_t bound = 10;  // for each shared resource

    bounded_server() : where_(io::simulation_options{.seed = 1}, 1, few_of_everything) {
        const std::array<smb::server::user_database::admission, 2> both{
            {{.name = "greedy", .password = "p"}, {.name = "honest", .password = "p"}}};
        EXPECT_TRUE(where_.users.admit(both));
    }
    ~bounded_server() override {
        silent_.clear();
        clients_.clear();
        where_.run();
        EXPECT_EQ(where_.server->context().quotas.clients(), 0U) << "clients without resources are forgotten";
        EXPECT_EQ(where_.server->context().admission.connections_without_session(), 0U);
        EXPECT_EQ(where_.server->context().admission.sessions_in_progress(), 0U);
        where_.stop();
    }

    static void few_of_everything(smb::server::server_configuration& rules) {
        rules.bounds.shared.fill(bound);
        rules.bounds.connections_without_session = bound;
        rules.bounds.sessions_in_progress = bound;
        rules.bounds.buffer_bytes = std::size_t{7} << 19;  // 3.5 MiB
        rules.allows_guests = true;
        rules.shares.front().guests = smb::server::guest_access::write;
    }
    [[nodiscard]] static io::socket_address address(const std::string& text) {
        return io::socket_address::ip(text, 1).value();
    }
    compliant_client& connect(const std::string& from = "10.0.0.1") {
        clients_.push_back(std::make_unique<compliant_client>(where_, address(from)));
        return *clients_.back();
    }
    compliant_client& log_on(const std::string& user, const std::string& from = "10.0.0.1") {
        compliant_client& client = connect(from);
        EXPECT_EQ(client.log_on(user, user.empty() ? "" : "p"), smb::wire::nt_status::success);
        EXPECT_EQ(client.connect_tree("files"), smb::wire::nt_status::success);
        return client;
    }
    [[nodiscard]] std::uint64_t rejections(smb::server::limit which) {
        return where_.server->context().rejections.of(which);
    }

    world where_;
    std::vector<io::socket_handle> silent_;  // connections that send nothing
    std::vector<std::unique_ptr<compliant_client>> clients_;
};

}  // namespace sluice::smb_simulation
