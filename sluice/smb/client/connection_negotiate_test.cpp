#include "sluice/smb/client/connection.hpp"

#include <gtest/gtest.h>

#include "tests/smb_client/rig.hpp"

// NEGOTIATE: the servers that the client accepts.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

using smb::server::server_configuration;
using smb::wire::dialect;

// The outcome of a negotiation with a server whose newest dialect is 2.1.
[[nodiscard]] outcome<dialect> negotiate_with_old_server(const connection_options& how) {
    rig world([](server_configuration& rules) { rules.dialect_max = dialect::smb_2_1; });
    auto opened = world.wait_for(connection::open(world.dependencies(), world.connect(), how));
    if (not opened) return failed(opened.error());
    const dialect chosen = (*opened)->agreed().dialect;
    world.wait_for((*opened)->close());
    return chosen;
}

TEST(client_negotiation, takes_the_newest_dialect_of_both) {
    EXPECT_EQ(negotiate_with_old_server({}), dialect::smb_2_1);
}

TEST(client_negotiation, without_a_common_dialect_reports_the_status_of_the_server) {
    const auto made = negotiate_with_old_server({.server_name = "server", .dialect_min = dialect::smb_3_0});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().status(), nt_status::not_supported);
}

TEST(client_negotiation, offers_nothing_if_the_range_is_empty) {
    const auto made = negotiate_with_old_server(
        {.server_name = "server", .dialect_min = dialect::smb_3_1_1, .dialect_max = dialect::smb_3_0});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().which(), client_error::kind::policy);
}

TEST(client_negotiation, rejects_a_server_without_encryption_if_it_is_required) {
    const auto made =
        negotiate_with_old_server({.server_name = "server", .encryption = encryption::required});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().which(), client_error::kind::policy);
}

TEST(client_negotiation, generates_an_identifier_per_client_unless_it_has_one) {
    rig world;
    const smb::wire::guid known{.bytes = {std::byte{7}}};
    for (const smb::wire::guid& wanted : {smb::wire::guid{}, known}) {
        auto opened = world.wait_for(connection::open(world.dependencies(), world.connect(),
                                                      {.server_name = "server", .client_guid = wanted}));
        ASSERT_TRUE(opened);
        const smb::wire::guid used = (*opened)->agreed().client_guid;
        EXPECT_NE(used, smb::wire::guid{});
        EXPECT_EQ(used == known, wanted == known);
        world.wait_for((*opened)->close());
    }
}

}  // namespace
}  // namespace sluice::smb_client_testing
