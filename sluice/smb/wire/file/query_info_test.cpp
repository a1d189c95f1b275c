#include "sluice/smb/wire/file/query_info.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const query_info_args request{
    .type = info_type::security,
    .information_class = 18,
    .output_bytes_max = 0x1000,
    .additional_information = bits_of(security_information::owner | security_information::dacl),
    .flags = query_info_flags::return_single_entry,
    .file = {.persistent_part = le64(1), .volatile_part = le64(2)},
    .input = text_bytes("in")};
const query_info_reply reply{.output = text_bytes("output")};

TEST(query_info, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(body_of(request),
              some_bytes({41, 0, 3, 18, 0, 16, 0, 0, 104, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0,   2,
                          0,  0, 0, 1,  0, 0,  0, 0, 0,   0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 'i', 'n'}));
    EXPECT_EQ(body_of(reply), some_bytes({9, 0, 72, 0, 6, 0, 0, 0, 'o', 'u', 't', 'p', 'u', 't'}));
}

TEST(query_info, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_query_info);
    expect_round_trip(query_info_args{}, decode_query_info);
    expect_round_trip(reply, decode_query_info_reply);
}

TEST(query_info, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request, 40, decode_query_info);
    expect_fixed_part_checked(reply, 8, decode_query_info_reply);
    expect_range_checked<le16, le32>(request, {.offset_at = 8, .length_at = 12}, decode_query_info);
    expect_range_checked<le16, le32>(reply, {.offset_at = 2, .length_at = 4}, decode_query_info_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
