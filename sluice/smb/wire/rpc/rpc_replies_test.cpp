#include "sluice/smb/wire/rpc/rpc_replies.hpp"

#include <gtest/gtest.h>

#include <array>

#include "sluice/smb/wire/rpc/rpc_pdu.hpp"

namespace sluice::smb::wire {
namespace {

std::vector<std::byte> fragment_of(std::uint32_t call, std::size_t bytes) {
    std::vector<std::byte> out;
    append_rpc_fragment(out, {.packet = rpc_packet::response, .call = call}, std::vector<std::byte>(bytes));
    return out;
}

TEST(rpc_replies, are_read_one_fragment_at_a_time) {
    rpc_replies replies;
    std::array<std::byte, 100> room;
    EXPECT_EQ(replies.read(room).bytes, 0u);
    for (const std::uint32_t call : {1u, 2u})
        replies.append(fragment_of(call, 4));
    EXPECT_EQ(replies.readable_bytes(), 40u);
    for (const std::uint32_t call : {1u, 2u}) {
        const auto read = replies.read(room);
        EXPECT_EQ(read.bytes, 20u);
        EXPECT_FALSE(read.more);
        EXPECT_EQ(bytes_view(room).take<rpc_head>()->call.value(), call);
    }
    EXPECT_EQ(replies.readable_bytes(), 0u);
    EXPECT_EQ(replies.kept_bytes(), 0u);
}

TEST(rpc_replies, may_be_appended_while_one_is_read_in_parts) {
    rpc_replies replies;
    replies.append(fragment_of(1, 4));
    std::array<std::byte, 12> room;
    EXPECT_TRUE(replies.read(room).more);
    replies.append(fragment_of(2, 0));
    const auto rest = replies.read(room);
    EXPECT_EQ(rest.bytes, 8u);
    EXPECT_FALSE(rest.more);
    EXPECT_EQ(replies.readable_bytes(), sizeof(rpc_head));
    replies.clear();
    EXPECT_EQ(replies.readable_bytes(), 0u);
    EXPECT_EQ(replies.kept_bytes(), 0u);
}

}  // namespace
}  // namespace sluice::smb::wire
