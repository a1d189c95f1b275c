#include "sluice/smb/wire/file/flush.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const flush_args request{.reserved = 0xffff, .file = {.persistent_part = le64(1), .volatile_part = le64(2)}};

TEST(flush, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(body_of(request),
              some_bytes({24, 0, 0xff, 0xff, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(body_of(flush_reply{}), some_bytes({4, 0, 0, 0}));
}

TEST(flush, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_flush);
    expect_round_trip(flush_reply{}, decode_flush_reply);
}

TEST(flush, fixed_parts_are_checked) {
    expect_fixed_part_checked(request, 24, decode_flush);
    expect_fixed_part_checked(flush_reply{}, 4, decode_flush_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
