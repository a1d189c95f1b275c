#include "sluice/smb/wire/message/smb1_negotiate.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

message_bytes frame_of(const smb1_negotiate& negotiate) {
    message_bytes room(128);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, negotiate);
    return copy_of(*writer.finish());
}

const smb1_negotiate both{.smb_2_002 = true, .smb_2_wildcard = true};

TEST(smb1_negotiate, lists_the_offered_dialects_of_smb2) {
    for (const bool exact : {false, true}) {
        for (const bool wildcard : {false, true}) {
            const smb1_negotiate offered{.smb_2_002 = exact, .smb_2_wildcard = wildcard};
            EXPECT_EQ(decode_smb1_negotiate(frame_of(offered)), offered);
        }
    }
}

TEST(smb1_negotiate, dialects_are_compared_to_their_end) {
    message_bytes frame = frame_of({.smb_2_002 = true});
    frame[frame.size() - 2] = std::byte{'3'};  // "SMB 2.003"
    EXPECT_EQ(decode_smb1_negotiate(frame), smb1_negotiate{});
}

TEST(smb1_negotiate, truncation_at_any_byte_is_rejected) {
    const message_bytes frame = frame_of(both);
    for (std::size_t length = 0; length < frame.size(); ++length) {
        const auto refused = decode_smb1_negotiate(*bytes_view(frame).first(length));
        EXPECT_EQ(refused.error(),
                  length < 35 ? decode_error::truncated : decode_error::range_outside_message);
    }
}

TEST(smb1_negotiate, other_messages_of_smb1_are_rejected) {
    const auto with_byte = [](std::size_t offset, int value) {
        message_bytes frame = frame_of(both);
        frame[offset] = static_cast<std::byte>(value);
        return decode_smb1_negotiate(frame).error();
    };
    EXPECT_EQ(with_byte(0, 0xfe), decode_error::bad_protocol_id);
    EXPECT_EQ(with_byte(4, 0x73), decode_error::bad_value);   // session setup
    EXPECT_EQ(with_byte(9, 0x80), decode_error::bad_value);   // a reply
    EXPECT_EQ(with_byte(32, 1), decode_error::bad_value);     // parameter words
    EXPECT_EQ(with_byte(35, 0x04), decode_error::bad_value);  // no dialect mark
}

TEST(smb1_negotiate, a_last_dialect_without_its_terminator_is_rejected) {
    message_bytes frame = frame_of(both);
    frame.back() = std::byte{'?'};
    EXPECT_EQ(decode_smb1_negotiate(frame), std::unexpected(decode_error::bad_value));
}

}  // namespace
}  // namespace sluice::smb::wire
