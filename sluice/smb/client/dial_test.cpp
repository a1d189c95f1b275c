#include "sluice/smb/client/dial.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "tests/smb_client/rig.hpp"

// tests/interop has the connections to real servers.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

TEST(dial, without_an_address_reports_an_error) {
    rig world;
    const auto opened = world.wait_for(dial(world.dependencies(), {}, {}));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().which(), client_error::kind::io);
    EXPECT_EQ(opened.error().code(), EADDRNOTAVAIL);
}

TEST(dial, reports_the_error_of_the_last_address) {
    rig world;
    const io::socket_address refused = io::socket_address::loopback_v4(1);
    const io::socket_address broadcast = io::socket_address::parse("255.255.255.255:445").value();
    const auto code_of = [&](std::array<io::socket_address, 2> addresses) {
        const auto opened = world.wait_for(dial(world.dependencies(), addresses, {}));
        return opened ? 0 : opened.error().code();
    };
    const int last_refused = code_of({broadcast, refused});
    const int last_broadcast = code_of({refused, broadcast});
    EXPECT_EQ(last_refused, ECONNREFUSED);
    EXPECT_NE(last_broadcast, ECONNREFUSED);
    EXPECT_NE(last_broadcast, 0);
}

}  // namespace
}  // namespace sluice::smb_client_testing
