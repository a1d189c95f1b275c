#include "sluice/smb/wire/file/query_directory.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

using namespace std::string_view_literals;

const query_directory_args request{.information_class = directory_class::id_both_directory,
                                   .flags = query_directory_flags::reopen,
                                   .file_index = 3,
                                   .file = {.persistent_part = le64(1), .volatile_part = le64(2)},
                                   .pattern = text_bytes("*\0"sv),
                                   .output_bytes_max = 65536};
const query_directory_reply reply{.entries = text_bytes("entries")};

TEST(query_directory, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(body_of(request), some_bytes({33, 0, 37, 16, 3, 0, 0, 0,  1, 0, 0, 0, 0, 0, 0, 0,   2,
                                            0,  0, 0,  0,  0, 0, 0, 96, 0, 2, 0, 0, 0, 1, 0, '*', 0}));
    EXPECT_EQ(body_of(reply), some_bytes({9, 0, 72, 0, 7, 0, 0, 0, 'e', 'n', 't', 'r', 'i', 'e', 's'}));
}

TEST(query_directory, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_query_directory);
    expect_round_trip(query_directory_args{}, decode_query_directory);
    expect_round_trip(reply, decode_query_directory_reply);
    expect_round_trip(query_directory_reply{}, decode_query_directory_reply);
}

TEST(query_directory, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request, 32, decode_query_directory);
    expect_fixed_part_checked(reply, 8, decode_query_directory_reply);
    expect_range_checked<le16, le16>(request, {.offset_at = 24, .length_at = 26}, decode_query_directory);
    expect_range_checked<le16, le32>(reply, {.offset_at = 2, .length_at = 4}, decode_query_directory_reply);
}

TEST(query_directory, a_pattern_of_an_odd_number_of_bytes_is_rejected) {
    expect_refused(with_field(message_of(request), 26, le16(1)), decode_error::bad_text,
                   decode_query_directory);
}

}  // namespace
}  // namespace sluice::smb::wire
