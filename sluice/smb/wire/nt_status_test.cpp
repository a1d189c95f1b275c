#include "sluice/smb/wire/nt_status.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::wire {
namespace {

TEST(nt_status, is_named_as_in_the_specification) {
    EXPECT_EQ(name_of(nt_status::success), "STATUS_SUCCESS");
    EXPECT_EQ(name_of(nt_status::end_of_file), "STATUS_END_OF_FILE");
    EXPECT_EQ(name_of(nt_status::notify_enum_dir), "STATUS_NOTIFY_ENUM_DIR");
    EXPECT_EQ(name_of(nt_status(0xc0000257)), "STATUS_PATH_NOT_COVERED");
}

TEST(nt_status, a_value_without_an_enumerator_has_a_placeholder_name) {
    EXPECT_EQ(name_of(nt_status(0xcafe0000)), "STATUS_?");
}

TEST(nt_status, severity_distinguishes_errors_warnings_and_success) {
    EXPECT_TRUE(is_success(nt_status::success));
    EXPECT_TRUE(is_success(nt_status::pending));
    EXPECT_TRUE(is_warning(nt_status::buffer_overflow) and !is_error(nt_status::buffer_overflow));
    EXPECT_TRUE(is_error(nt_status::more_processing_required));
    EXPECT_FALSE(is_success(nt_status::no_more_files));
}

}  // namespace
}  // namespace sluice::smb::wire
