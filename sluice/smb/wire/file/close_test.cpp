#include "sluice/smb/wire/file/close.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

const close_args request{.flags = close_flags::query_attributes,
                         .file = {.persistent_part = le64(0x0102), .volatile_part = le64(0x0304)}};
const close_reply reply{.flags = close_flags::query_attributes,
                        .information = {.creation_time = filetime(std::uint64_t{1}),
                                        .last_access_time = filetime(std::uint64_t{2}),
                                        .last_write_time = filetime(std::uint64_t{3}),
                                        .change_time = filetime(std::uint64_t{4}),
                                        .allocation_bytes = 5,
                                        .end_of_file_bytes = 6,
                                        .attributes = file_attributes::directory}};

TEST(close, has_its_fields_where_the_specification_puts_them) {
    EXPECT_EQ(body_of(request),
              some_bytes({24, 0, 1, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0}));
    const message_bytes body = body_of(reply);
    ASSERT_EQ(body.size(), 60u);
    for (std::uint64_t i = 0; i < 6; ++i)
        EXPECT_EQ(bytes_view(body).take_at<le64>(8 + 8 * i)->value(), i + 1);
    EXPECT_EQ(bytes_view(body).take_at<le32>(56)->value(), 0x10u);
}

TEST(close, is_unchanged_by_a_round_trip) {
    expect_round_trip(request, decode_close);
    expect_round_trip(reply, decode_close_reply);
}

TEST(close, fixed_parts_are_checked) {
    expect_fixed_part_checked(request, 24, decode_close);
    expect_fixed_part_checked(reply, 60, decode_close_reply);
}

}  // namespace
}  // namespace sluice::smb::wire
