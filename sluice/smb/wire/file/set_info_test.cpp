#include "sluice/smb/wire/file/set_info.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const set_info_args request{.type = info_type::file,
                            .information_class = 20,
                            .additional_information = 7,
                            .file = {.persistent_part = le64(1), .volatile_part = le64(2)},
                            .input = text_bytes("12345678")};

TEST(set_info, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(body_of(request),
              some_bytes({33, 0, 1, 20, 8, 0, 0, 0, 96, 0, 0, 0, 7,   0,   0,   0,   1,   0,   0,   0,
                          0,  0, 0, 0,  2, 0, 0, 0, 0,  0, 0, 0, '1', '2', '3', '4', '5', '6', '7', '8'}));
    EXPECT_EQ(body_of(set_info_reply{}), some_bytes({2, 0}));
}

TEST(set_info, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_set_info);
    expect_round_trip(set_info_args{}, decode_set_info);
    expect_round_trip(set_info_reply{}, decode_set_info_reply);
}

TEST(set_info, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request, 32, decode_set_info);
    expect_fixed_part_checked(set_info_reply{}, 2, decode_set_info_reply);
    expect_range_checked<le16, le32>(request, {.offset_at = 8, .length_at = 4}, decode_set_info);
}

}  // namespace
}  // namespace sluice::smb::wire
