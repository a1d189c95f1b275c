#include "sluice/smb/client/status_text.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace sluice::smb::client {
namespace {

TEST(status_text, has_an_errno_value_and_a_meaning) {
    EXPECT_EQ(text_of(wire::nt_status::object_name_not_found).code, ENOENT);
    EXPECT_EQ(text_of(wire::nt_status::access_denied).code, EACCES);
    EXPECT_EQ(text_of(wire::nt_status::directory_not_empty).code, ENOTEMPTY);
    EXPECT_FALSE(text_of(wire::nt_status::sharing_violation).meaning.empty());
}

TEST(status_text, is_empty_for_an_unknown_status) {
    const status_text& unknown = text_of(wire::nt_status(0xc0de'0001));
    EXPECT_EQ(unknown.code, EIO);
    EXPECT_TRUE(unknown.meaning.empty());
    EXPECT_TRUE(unknown.remedy.empty());
}

}  // namespace
}  // namespace sluice::smb::client
