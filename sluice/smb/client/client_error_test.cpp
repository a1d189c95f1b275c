#include "sluice/smb/client/client_error.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace sluice::smb::client {
namespace {

TEST(client_error, has_an_errno_value_and_a_text_for_each_status) {
    const auto full = client_error::of_status("write", wire::nt_status::disk_full);
    EXPECT_EQ(full.code(), ENOSPC);
    EXPECT_EQ(full.message(), "write: the volume is full (STATUS_DISK_FULL); free space on the server");
    const auto odd = client_error::of_status("open", wire::nt_status(0xc0de'0001));
    EXPECT_EQ(odd.code(), EIO);
    EXPECT_EQ(odd.message(), "open: the server returned 0xc0de0001");
}

TEST(client_error, is_of_the_connection_if_another_connection_may_succeed) {
    using wire::nt_status;
    EXPECT_TRUE(client_error::of_io("read", ECONNRESET).is_of_connection());
    EXPECT_TRUE(client_error::of_protocol("read", "invalid READ reply").is_of_connection());
    EXPECT_FALSE(
        client_error::of_policy("read", "the server does not support encryption").is_of_connection());
    for (const nt_status ended : {nt_status::user_session_deleted, nt_status::network_session_expired,
                                  nt_status::network_name_deleted})
        EXPECT_TRUE(client_error::of_status("read", ended).is_of_connection());
    EXPECT_FALSE(client_error::of_status("read", nt_status::access_denied).is_of_connection());
}

TEST(client_error, names_the_violated_rule) {
    EXPECT_EQ(client_error::of_policy("open", "the path is too long for SMB").message(),
              "open: the path is too long for SMB");
}

}  // namespace
}  // namespace sluice::smb::client
