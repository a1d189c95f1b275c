#include "sluice/smb/wire/rpc/rpc_fragments.hpp"

#include <gtest/gtest.h>

namespace sluice::smb::wire {
namespace {

std::vector<std::byte> response(std::uint32_t call, std::size_t bytes, std::uint8_t flags) {
    std::vector<std::byte> out;
    append_rpc_fragment(out, {.packet = rpc_packet::response, .flags = flags, .call = call},
                        std::vector<std::byte>(sizeof(rpc_call_head) + bytes));
    return out;
}

TEST(rpc_fragments, are_found_in_data_that_arrives_byte_by_byte) {
    rpc_fragments fragments;
    rpc_results results(7);
    for (const std::uint8_t flags : {rpc_first_fragment, rpc_last_fragment})
        for (const std::byte each : response(7, 5, flags)) {
            fragments.append(bytes_view(std::span(&each, 1)));
            const auto next = fragments.next();
            ASSERT_TRUE(next.has_value());
            if (*next) {
                EXPECT_EQ((*next)->size(), 29u);
                EXPECT_EQ(results.append(**next), flags == rpc_last_fragment);
            }
        }
    EXPECT_EQ(results.bytes().size(), 10u);
}

TEST(rpc_fragments, several_in_one_read_are_returned_one_by_one) {
    std::vector<std::byte> both = response(1, 0, rpc_first_fragment);
    const std::vector<std::byte> second = response(1, 3, rpc_last_fragment);
    both.insert(both.end(), second.begin(), second.end());
    rpc_fragments fragments;
    fragments.append(both);
    EXPECT_EQ((*fragments.next())->size(), 24u);
    EXPECT_EQ((*fragments.next())->size(), 27u);
    EXPECT_EQ(*fragments.next(), std::nullopt);
}

TEST(rpc_fragments, a_fragment_that_is_too_long_is_an_error_before_it_arrives) {
    std::vector<std::byte> head = response(1, 0, rpc_last_fragment);
    head[8] = head[9] = std::byte{0xFF};
    rpc_fragments fragments;
    fragments.append(head);
    EXPECT_EQ(fragments.next().error(), decode_error::too_long);
}

TEST(rpc_results, reject_a_fragment_of_another_call) {
    rpc_results results(7);
    EXPECT_EQ(results.append(response(8, 4, rpc_last_fragment)).error(), decode_error::bad_value);
}

TEST(rpc_results, reject_an_empty_fragment_before_the_last_one) {
    rpc_results results(7);
    EXPECT_EQ(results.append(response(7, 0, rpc_first_fragment)).error(), decode_error::bad_value);
    EXPECT_EQ(results.append(response(7, 0, rpc_last_fragment)), true);
}

TEST(rpc_results, end_when_the_server_sends_too_much) {
    rpc_results results(7);
    const std::vector<std::byte> fragment = response(7, 4000, rpc_first_fragment);
    decoded<bool> appended = false;
    std::size_t count = 0;
    for (; appended and count < 10'000; ++count)
        appended = results.append(fragment);
    EXPECT_EQ(appended.error(), decode_error::too_long);
    EXPECT_LE(results.bytes().size(), rpc_results_bytes_max);
}

}  // namespace
}  // namespace sluice::smb::wire
