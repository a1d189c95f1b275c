#include "sluice/smb/wire/message/server_notification.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

TEST(server_notification, has_the_type_0_and_four_reserved_bytes_for_a_closed_session) {
    EXPECT_EQ(body_of(session_closed_notification{}), some_bytes({12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(server_notification, is_unchanged_by_a_round_trip) {
    expect_round_trip(session_closed_notification{}, decode_server_notification);
}

TEST(server_notification, is_rejected_if_it_has_no_room_for_a_type) {
    const message_bytes whole = message_of(session_closed_notification{});
    expect_refused({whole.begin(), whole.begin() + header_bytes + 7}, decode_error::truncated,
                   decode_server_notification);
    expect_refused(with_field(whole, 0, le16(7)), decode_error::bad_structure_size,
                   decode_server_notification);
}

TEST(server_notification, is_unsupported_if_it_has_another_type) {
    expect_refused(with_field(message_of(session_closed_notification{}), 4, le32(1)),
                   decode_error::unsupported, decode_server_notification);
}

}  // namespace
}  // namespace sluice::smb::wire
