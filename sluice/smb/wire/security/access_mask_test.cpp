#include "sluice/smb/wire/security/access_mask.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::wire {
namespace {

TEST(access_mask, generic_rights_comprise_the_published_file_rights) {
    EXPECT_EQ(mapped_for_files(access_mask::generic_read), access_mask(0x00120089));
    EXPECT_EQ(mapped_for_files(access_mask::generic_write), access_mask(0x00120116));
    EXPECT_EQ(mapped_for_files(access_mask::generic_execute), access_mask(0x001200a0));
    EXPECT_EQ(mapped_for_files(access_mask::generic_all), access_mask(0x001f01ff));
}

TEST(access_mask, mapping_keeps_all_rights_that_are_not_generic) {
    const access_mask asked = access_mask::maximum_allowed | access_mask::delete_object;
    EXPECT_EQ(mapped_for_files(asked | access_mask::generic_read), asked | access_mask(0x00120089));
}

TEST(access_mask, sets_are_queried_for_all_or_some_of_their_bits) {
    const access_mask two = access_mask::read_data | access_mask::write_data;
    EXPECT_TRUE(has(file_all_access, two));
    EXPECT_FALSE(has(file_generic_read, two));
    EXPECT_TRUE(has_any(file_generic_read, two));
    EXPECT_EQ(without(two, access_mask::read_data), access_mask::write_data);
}

}  // namespace
}  // namespace sluice::smb::wire
