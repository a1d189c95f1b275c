#include "sluice/smb/wire/rpc/rpc_ndr.hpp"

#include <gtest/gtest.h>

#include <string>

namespace sluice::smb::wire {
namespace {

constexpr sid alice{5, {21, 7, 8, 9, 10}};

TEST(ndr, returns_counted_texts_as_they_were_written) {
    for (const std::string text : {"", "a", "töst", "four"}) {
        ndr_writer out(200);
        out.counted_text_head(text);
        out.counted_text(text);
        ndr_reader in(out.bytes());
        const auto head = in.counted_text_head();
        ASSERT_TRUE(head.has_value());
        EXPECT_EQ(head->is_present, not text.empty());
        EXPECT_EQ(in.counted_text(*head), text);
        EXPECT_EQ(in.remaining(), 0u);
    }
}

TEST(ndr, rejects_counted_texts_whose_counts_disagree) {
    const auto reads = [](std::uint16_t bytes, std::uint16_t room, std::uint32_t units) {
        ndr_writer out(200);
        out.u16(bytes);
        out.u16(room);
        out.pointer(true);
        out.u32(units);
        out.u32(0);
        out.u32(units);
        for (std::uint32_t i = 0; i != units; ++i)
            out.u16('x');
        ndr_reader in(out.bytes());
        const auto head = in.counted_text_head();
        return head and in.counted_text(*head);
    };
    EXPECT_TRUE(reads(4, 4, 2));
    EXPECT_TRUE(reads(4, 6, 2));
    EXPECT_FALSE(reads(4, 2, 2)) << "longer than its room";
    EXPECT_FALSE(reads(3, 4, 2)) << "half a character";
    EXPECT_FALSE(reads(2, 4, 2)) << "shorter than its characters";
    EXPECT_FALSE(reads(8, 8, 2)) << "longer than its characters";
}

TEST(ndr, writes_a_text_beyond_the_counts_of_16_bits_as_empty) {
    ndr_writer out(200'000);
    out.counted_text_head(std::string(40'000, 'x'));
    out.counted_text(std::string(40'000, 'x'));
    EXPECT_EQ(out.bytes().size(), 8u);
    ndr_reader in(out.bytes());
    EXPECT_FALSE(in.counted_text_head()->is_present);
}

TEST(ndr, returns_sids_as_they_were_written) {
    for (const sid& who : {alice, sid(1, std::initializer_list<std::uint32_t>{})}) {
        ndr_writer out(200);
        out.sid_referent(who);
        ndr_reader in(out.bytes());
        EXPECT_EQ(in.sid_referent(), who);
        for (std::size_t size = 0; size != out.bytes().size(); ++size)
            EXPECT_FALSE(ndr_reader(*out.bytes().first(size)).sid_referent().has_value());
    }
}

TEST(ndr, rejects_a_sid_whose_counts_disagree) {
    ndr_writer out(200);
    out.sid_referent(alice);
    std::vector<std::byte> bytes(out.bytes().begin(), out.bytes().end());
    bytes.front() = std::byte{4};
    EXPECT_FALSE(ndr_reader(bytes).sid_referent().has_value());
}

TEST(ndr, rejects_arrays_beyond_the_limit_of_elements) {
    ndr_writer out(200);
    out.u32(3);
    EXPECT_TRUE(ndr_reader(out.bytes(), {.elements_max = 3}).array_count(3).has_value());
    EXPECT_FALSE(ndr_reader(out.bytes(), {.elements_max = 2}).array_count(3).has_value());
    EXPECT_FALSE(ndr_reader(out.bytes()).array_count(4).has_value()) << "not the announced number";
}

TEST(ndr, rejects_data_beyond_the_limit_of_depth) {
    ndr_writer out(200);
    out.sid_referent(alice);
    ndr_reader in(out.bytes(), {.depth_max = 2});
    {
        const ndr_level array(in);
        EXPECT_TRUE(array);
        const ndr_level element(in);
        EXPECT_TRUE(element);
        EXPECT_FALSE(in.sid_referent().has_value());
    }
    EXPECT_FALSE(ndr_reader(out.bytes(), {.depth_max = 0}).text().has_value());
}

}  // namespace
}  // namespace sluice::smb::wire
