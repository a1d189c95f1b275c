#include "sluice/smb/wire/fscc/fscc_quota.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/fscc/fscc_testing.hpp"

namespace sluice::smb::wire {
namespace {

using testing::expect_round_trip;
using testing::field_source;
using testing::written;

constexpr std::size_t many = 1000;

sid random_user(field_source& from) {
    std::vector<std::uint32_t> parts(1 + from.below(15));
    for (std::uint32_t& each : parts)
        each = from.u32();
    return {from.u64() & 0xffff'ffff'ffffULL, parts};
}

TEST(quotas, entries_round_trip_and_are_cut_between_entries) {
    field_source from(1);
    for (int round = 0; round < 50; ++round) {
        std::vector<quota_information> entries(1 + from.below(6));
        for (quota_information& each : entries)
            each = {.change_time = from.u64(),
                    .used_bytes = from.u64(),
                    .threshold_bytes = from.u64(),
                    .limit_bytes = from.u64(),
                    .user = random_user(from)};
        std::vector<std::byte> room(4096);
        std::size_t count = 0;
        const bytes_view whole = encode_quotas(room, entries, count);
        ASSERT_EQ(count, entries.size());
        EXPECT_EQ(decode_quotas(whole, many), entries);
        EXPECT_EQ(decode_quotas(whole, entries.size() - 1).error(), decode_error::too_many);
        for (std::size_t size = 0; size < whole.size(); size += 7) {
            EXPECT_NE(decode_quotas(*whole.first(size), many), entries);
            std::vector<std::byte> small(size);
            const bytes_view some = encode_quotas(small, entries, count);
            ASSERT_LT(count, entries.size());
            EXPECT_EQ(decode_quotas(some, many)->size(), count);
        }
    }
}

TEST(quotas, queries_round_trip) {
    field_source from(2);
    for (int round = 0; round < 50; ++round) {
        quota_query query{.wants_one = from.yes(), .restarts = from.yes()};
        std::size_t bytes = 0;
        if (from.yes()) {
            for (std::size_t left = from.below(5); left != 0; --left) {
                query.users.push_back(random_user(from));
                bytes += 8 + query.users.back().encoded_bytes();
            }
        } else if (from.yes()) {
            query.after = random_user(from);
            bytes = query.after->encoded_bytes();
        }
        expect_round_trip(query, [](bytes_view input) { return decode_quota_query(input, many); }, bytes, 16);
    }
}

TEST(quotas, more_users_than_the_limit_are_rejected) {
    const quota_query query{.users = {3, sid_everyone}};
    const auto bytes = written([&](byte_writer& writer) { encode(writer, query); });
    EXPECT_EQ(decode_quota_query(bytes, 3), query);
    EXPECT_EQ(decode_quota_query(bytes, 2).error(), decode_error::too_many);
}

TEST(quotas, list_of_users_precedes_the_one_to_begin_after) {
    const quota_query query{.users = {sid_everyone}};
    auto bytes = written([&](byte_writer& writer) { encode(writer, query); });
    bytes.at(8) = std::byte{12};
    EXPECT_EQ(decode_quota_query(bytes, many), query);
}

TEST(quotas, sids_outside_the_message_are_rejected) {
    const quota_query query{.after = sid_everyone};
    auto bytes = written([&](byte_writer& writer) { encode(writer, query); });
    bytes.at(12) = std::byte{1};
    EXPECT_EQ(decode_quota_query(bytes, many).error(), decode_error::range_outside_message);
    bytes.at(15) = std::byte{0xff};
    EXPECT_EQ(decode_quota_query(bytes, many).error(), decode_error::range_outside_message);
}

}  // namespace
}  // namespace sluice::smb::wire
