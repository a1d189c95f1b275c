#include "sluice/smb/wire/fsctl/fsctl_dfs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sluice/smb/wire/fscc/fscc_testing.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::wire {
namespace {

using testing::expect_round_trip;
using testing::field_source;
using testing::written;

std::size_t utf16_size(std::string_view text) {
    return utf16_bytes_of(text).value();
}

TEST(dfs_referrals, requests_round_trip) {
    field_source from(1);
    for (int round = 0; round < 50; ++round) {
        const dfs_referral_request request{.version_max = from.u16(), .path = "\\" + from.name()};
        expect_round_trip(request, decode_dfs_referral_request, utf16_size(request.path), 4);
        dfs_referral_request_ex extended{.version_max = from.u16(), .path = from.name()};
        if (from.yes()) extended.site = from.name();
        const std::size_t site = extended.site ? 2 + utf16_size(*extended.site) : 0;
        expect_round_trip(extended, decode_dfs_referral_request_ex, utf16_size(extended.path) + site, 10);
    }
}

TEST(dfs_referrals, replies_round_trip_in_all_versions) {
    field_source from(2);
    constexpr std::array<std::size_t, 4> entry_bytes{8, 22, 34, 34};
    for (unsigned round = 0; round < 100; ++round) {
        const std::size_t version = round % 4;
        dfs_referral_reply reply{.version = static_cast<std::uint16_t>(version + 1),
                                 .path_consumed_bytes = from.u16()};
        if (version != 0) {
            reply.time_to_live_seconds = from.u32();
            reply.path = from.name();
        }
        std::size_t texts = version == 0 ? 0 : utf16_size(reply.path) + 2;
        for (std::size_t left = 1 + from.below(dfs_targets_max); left != 0; --left) {
            reply.targets.push_back("\\" + from.name());
            texts += utf16_size(reply.targets.back()) + 2;
        }
        const std::size_t fixed = 8 + reply.targets.size() * entry_bytes.at(version);
        EXPECT_EQ(encoded_bytes_of(reply), fixed + texts);
        expect_round_trip(reply, decode_dfs_referral_reply, texts, fixed);
    }
}

// The layouts of [MS-DFSC] 2.2.5.1 to 2.2.5.4, written by hand: one target per version.
TEST(dfs_referrals, replies_have_the_layout_of_the_specification) {
    const auto encoded = [](std::uint16_t version) {
        const dfs_referral_reply reply{.version = version,
                                       .path_consumed_bytes = 8,
                                       .time_to_live_seconds = 300,
                                       .path = "\\s\\a",
                                       .targets = {"\\t\\b"}};
        return written([&](byte_writer& writer) { (void)encode(writer, reply); });
    };
    const auto bytes = [](std::string_view text) {
        const bytes_view view = std::as_bytes(std::span(text));
        return std::vector<std::byte>(view.begin(), view.end());
    };
    using namespace std::string_view_literals;
    constexpr auto source = "\\\0s\0\\\0a\0\0\0"sv;
    constexpr auto target = "\\\0t\0\\\0b\0\0\0"sv;
    const std::string head = std::string("\x08\0\x01\0\x02\0\0\0"sv);
    // VersionNumber, Size, ServerType, ReferralEntryFlags, ShareName
    EXPECT_EQ(encoded(1), bytes(head + std::string("\x01\0\x12\0\0\0\0\0"sv) + std::string(target)));
    // ..., Proximity, TimeToLive, DFSPathOffset, DFSAlternatePathOffset, NetworkAddressOffset
    EXPECT_EQ(encoded(2),
              bytes(head + std::string("\x02\0\x16\0\0\0\0\0\0\0\0\0\x2c\x01\0\0\x16\0\x16\0\x20\0"sv) +
                    std::string(source) + std::string(target)));
    // ..., TimeToLive, three offsets, ServiceSiteGuid
    const std::string rest = std::string("\x2c\x01\0\0\x22\0\x22\0\x2c\0"sv) + std::string(16, '\0') +
                             std::string(source) + std::string(target);
    EXPECT_EQ(encoded(3), bytes(head + std::string("\x03\0\x22\0\0\0\0\0"sv) + rest));
    EXPECT_EQ(encoded(4), bytes(head + std::string("\x04\0\x22\0\0\0\x04\0"sv) + rest));
}

TEST(dfs_referrals, path_of_a_request_ends_with_a_zero) {
    auto bytes =
        written([](byte_writer& writer) { (void)encode(writer, dfs_referral_request{.path = "\\a"}); });
    bytes.resize(bytes.size() - 2);
    EXPECT_EQ(decode_dfs_referral_request(bytes).error(), decode_error::missing);
}

TEST(dfs_referrals, path_of_an_extended_request_may_end_with_a_zero) {
    const dfs_referral_request_ex ended{.path = std::string("\\a\\b\0", 5)};
    const auto bytes = written([&](byte_writer& writer) { (void)encode(writer, ended); });
    EXPECT_EQ(decode_dfs_referral_request_ex(bytes)->path, "\\a\\b");
    const dfs_referral_request_ex split{.path = std::string("\\a\0b", 4)};
    const auto others = written([&](byte_writer& writer) { (void)encode(writer, split); });
    EXPECT_EQ(decode_dfs_referral_request_ex(others).error(), decode_error::bad_text);
}

TEST(dfs_referrals, longer_paths_than_the_limit_are_rejected) {
    const std::string longest(dfs_path_bytes_max / 2, 'a');
    std::vector<std::byte> room(3 * dfs_path_bytes_max);
    for (const std::size_t more : {0U, 1U}) {
        const std::string path = longest + std::string(more, 'a');
        byte_writer plain(room);
        ASSERT_TRUE(encode(plain, dfs_referral_request{.path = path}));
        EXPECT_EQ(decode_dfs_referral_request(*plain.finish()).has_value(), more == 0);
        byte_writer extended(room);
        ASSERT_TRUE(encode(extended, dfs_referral_request_ex{.path = path}));
        EXPECT_EQ(decode_dfs_referral_request_ex(*extended.finish()).has_value(), more == 0);
        byte_writer reply(room);
        EXPECT_EQ(encode(reply, dfs_referral_reply{.targets = {path}}).has_value(), more == 0);
    }
}

TEST(dfs_referrals, longest_replies_have_offsets_in_16_bits) {
    const std::string longest(dfs_path_bytes_max / 2, 'a');
    const dfs_referral_reply reply{.path = longest,
                                   .targets = std::vector<std::string>(dfs_targets_max, longest)};
    std::vector<std::byte> room(encoded_bytes_of(reply).value());
    byte_writer writer(room);
    ASSERT_TRUE(encode(writer, reply));
    EXPECT_EQ(decode_dfs_referral_reply(*writer.finish()), reply);
    dfs_referral_reply more = reply;
    more.targets.push_back("\\a");
    EXPECT_EQ(encoded_bytes_of(more).error(), decode_error::too_many);
}

TEST(dfs_referrals, first_target_of_version_4_begins_the_set_of_targets) {
    const dfs_referral_reply reply{.path = "\\s\\a", .targets = {"\\t\\b", "\\u\\c"}};
    const auto bytes = written([&](byte_writer& writer) { (void)encode(writer, reply); });
    EXPECT_EQ(bytes.at(4), std::byte{2}) << "the targets are servers of files, not roots";
    EXPECT_EQ(bytes.at(8 + 6), std::byte{4});
    EXPECT_EQ(bytes.at(8 + 34 + 6), std::byte{0});
}

TEST(dfs_referrals, lists_of_domains_and_unknown_versions_are_rejected) {
    const dfs_referral_reply reply{.version = 3, .path = "\\s\\a", .targets = {"\\t\\b"}};
    auto bytes = written([&](byte_writer& writer) { (void)encode(writer, reply); });
    bytes.at(8 + 6) = std::byte{2};
    EXPECT_EQ(decode_dfs_referral_reply(bytes).error(), decode_error::unsupported);
    bytes.at(8) = std::byte{5};
    EXPECT_EQ(decode_dfs_referral_reply(bytes).error(), decode_error::bad_value);
}

TEST(dfs_referrals, texts_outside_the_message_are_rejected) {
    const dfs_referral_reply reply{.version = 3, .path = "\\s\\a", .targets = {"\\t\\b"}};
    auto bytes = written([&](byte_writer& writer) { (void)encode(writer, reply); });
    bytes.at(8 + 17) = std::byte{0x7f};
    EXPECT_EQ(decode_dfs_referral_reply(bytes).error(), decode_error::range_outside_message);
}

}  // namespace
}  // namespace sluice::smb::wire
