#include "sluice/base/error.hpp"

#include <gtest/gtest.h>

#include "sluice/base/result.hpp"

namespace sluice {
namespace {

TEST(error, a_message_names_the_operation_the_descriptor_and_the_cause) {
    EXPECT_EQ(error(EIO, "read", 7).message(), "descriptor 7: read: Input/output error");
}

TEST(error, a_message_names_the_path) {
    EXPECT_EQ(error::with_path(ENOENT, "open", "/srv/x").message(),
              "/srv/x: open: No such file or directory");
}

TEST(error, a_reason_has_no_subject) {
    EXPECT_EQ(error(EIO, "read", 7).reason(), "read: Input/output error");
    EXPECT_EQ(error::with_path(ENOENT, "open", "/srv/x").reason(), "open: No such file or directory");
}

TEST(error, a_path_longer_than_the_note_keeps_its_end) {
    const std::string path = std::string(1000, 'a') + "/the_end";
    EXPECT_NE(error::with_path(ENOENT, "open", path).message().find("/the_end:"), std::string::npos);
}

TEST(error, a_path_overwritten_by_later_failures_is_not_mistaken_for_another) {
    const error first = error::with_path(ENOENT, "open", "/first");
    for (unsigned i = 0; i < error::recorded_paths; ++i)
        (void)error::with_path(ENOENT, "open", "/later");
    EXPECT_EQ(first.message(), "(a path no longer remembered): open: No such file or directory");
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

TEST(result, throws_an_exception_that_names_the_operation_the_path_and_the_cause) {
    const result<int> none = failure(error::with_path(ENOENT, "open", "/srv/x"));
    try {
        (void)none.value();
        FAIL() << "there is no value";
    } catch (const bad_result& thrown) {
        for (unsigned i = 0; i < error::recorded_paths; ++i)
            (void)error::with_path(EIO, "open", "/later");
        const bad_result copy = thrown;
        EXPECT_STREQ(copy.what(), "/srv/x: open: No such file or directory");
        EXPECT_EQ(copy.code(), std::errc::no_such_file_or_directory);
        EXPECT_EQ(copy.error(), std::errc::no_such_file_or_directory);
    }
}

TEST(result, throws_the_exception_that_the_standard_library_documents) {
    result<void> none = failure({EIO, "fsync", 7});
    try {
        none.value();
        FAIL() << "there is no value";
    } catch (const std::exception& thrown) {
        EXPECT_STREQ(thrown.what(), "descriptor 7: fsync: Input/output error");
    }
    EXPECT_THROW(std::move(none).value(), std::bad_expected_access<void>);
}

}  // namespace
}  // namespace sluice
