#include "sluice/smb/wire/file/change_notify.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const change_notify_args request{.flags = change_notify_flags::watch_tree,
                                 .output_bytes_max = 256,
                                 .file = {.persistent_part = le64(1), .volatile_part = le64(2)},
                                 .filter = completion_filter::size | completion_filter::stream_write};
const change_notify_reply reply{.changes = text_bytes("changes")};

TEST(change_notify, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(body_of(request), some_bytes({32, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                                            2,  0, 0, 0, 0, 0, 0, 0, 8, 8, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(body_of(reply), some_bytes({9, 0, 72, 0, 7, 0, 0, 0, 'c', 'h', 'a', 'n', 'g', 'e', 's'}));
}

TEST(change_notify, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_change_notify);
    expect_round_trip(reply, decode_change_notify_reply);
    expect_round_trip(change_notify_reply{}, decode_change_notify_reply);
}

TEST(change_notify, fixed_parts_and_ranges_are_checked) {
    expect_fixed_part_checked(request, 32, decode_change_notify);
    expect_fixed_part_checked(reply, 8, decode_change_notify_reply);
    expect_range_checked<le16, le32>(reply, {.offset_at = 2, .length_at = 4}, decode_change_notify_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
