#include "sluice/base/error.hpp"

#include <gtest/gtest.h>

#include "sluice/base/result.hpp"

namespace sluice {
namespace {

TEST(error, a_message_names_the_operation_the_descriptor_and_the_cause) {
    EXPECT_EQ(error(EIO, "read", 7).message(), "read on descriptor 7: Input/output error");
}

TEST(error, a_message_names_the_path) {
    EXPECT_EQ(error::with_path(ENOENT, "openat", "/srv/x").message(),
              "openat /srv/x: No such file or directory");
}

TEST(error, a_path_longer_than_the_note_keeps_its_end) {
    const std::string path = std::string(1000, 'a') + "/the_end";
    EXPECT_NE(error::with_path(ENOENT, "openat", path).message().find("/the_end:"), std::string::npos);
}

TEST(error, a_path_overwritten_by_later_failures_is_not_mistaken_for_another) {
    const error first = error::with_path(ENOENT, "openat", "/first");
    for (unsigned i = 0; i < error::noted_paths; ++i)
        (void)error::with_path(ENOENT, "openat", "/later");
    EXPECT_EQ(first.message(), "openat (a path no longer remembered): No such file or directory");
}

TEST(error, compares_by_cause) {
    EXPECT_EQ(error(ETIMEDOUT, "read"), std::errc::timed_out);
    EXPECT_EQ(error(EIO, "read", 3), error(EIO, "write"));
    EXPECT_FALSE(error(EIO, "read") == std::errc::timed_out);
}

TEST(result, carries_either_a_value_or_an_error) {
    const result<int> value = 3;
    const result<int> none = failure({ENOENT, "stat"});
    EXPECT_TRUE(value.has_value());
    EXPECT_EQ(none.error(), std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace sluice
