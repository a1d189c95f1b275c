#include "sluice/smb/client/dial.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "tests/smb_client/rig.hpp"

// tests/interop has the connections to servers that exist.

namespace sluice::smb_client_testing {
namespace {

using namespace smb::client;  // NOLINT: the names of one component
using smb::wire::nt_status;

TEST(dial, without_an_address_reports_that_there_is_none) {
    rig world;
    const auto opened = world.wait_for(dial(world.seams(), {}, {}));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().which(), client_error::kind::io);
    EXPECT_EQ(opened.error().code(), EADDRNOTAVAIL);
}

TEST(dial, reports_the_error_of_the_last_address) {
    rig world;
    const std::array unreachable{io::socket_address::loopback_v4(1), io::socket_address::loopback_v4(2)};
    const auto opened = world.wait_for(dial(world.seams(), unreachable, {}));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().which(), client_error::kind::io);
    EXPECT_STREQ(opened.error().step(), "connect");
}

}  // namespace
}  // namespace sluice::smb_client_testing
