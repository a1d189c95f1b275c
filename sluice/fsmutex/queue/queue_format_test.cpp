#include "sluice/fsmutex/queue/queue_format.hpp"

#include <gtest/gtest.h>

#include "sluice/base/random.hpp"

namespace sluice::fsmutex::queue_format {
namespace {

bool operator==(const slot& a, const slot& b) {
    return a.kind == b.kind and a.is_continued == b.is_continued and a.id == b.id and
           a.when_us == b.when_us and
           std::equal(a.entities().begin(), a.entities().end(), b.entities().begin(), b.entities().end()) and
           a.process_id == b.process_id and a.host_name() == b.host_name();
}

slot example_head() {
    slot head{.kind = slot_kind::head, .id = 0x0123'4567'89ab'cdef, .when_us = 77, .process_id = 4242};
    std::string_view("a-host-of-20-letters").copy(head.host.data(), host_bytes);
    return head;
}

std::array<std::byte, slot_bytes> bytes_of_slot(const slot& from) {
    std::array<std::byte, slot_bytes> bytes{};
    encode(from, bytes);
    return bytes;
}

TEST(a_slot, comes_back_as_it_was_written_for_any_number_of_entities) {
    for (std::size_t count = 1; count != 60; ++count) {
        std::vector<entity> wanted;
        for (std::size_t i = 0; i != count; ++i)
            wanted.emplace_back(i * 3, i % 2 == 0 ? lock_mode::shared : lock_mode::exclusive);
        std::size_t found = 0;
        for (std::size_t i = 0; i != slots_for(count); ++i) {
            const slot written = slot_of(example_head(), wanted, i);
            const slot read = decode_slot(bytes_of_slot(written));
            EXPECT_TRUE(read == written) << count << " entities, slot " << i;
            EXPECT_EQ(read.is_continued, i + 1 != slots_for(count));
            for (const entity each : read.entities())
                EXPECT_EQ(each, wanted[found++]);
        }
        EXPECT_EQ(found, count);
    }
}

TEST(a_slot, of_zeros_is_free_and_any_changed_byte_makes_it_torn) {
    EXPECT_EQ(decode_slot(std::array<std::byte, slot_bytes>{}).kind, slot_kind::free);
    const auto whole = bytes_of_slot(slot_of(example_head(), std::vector{entity(1)}, 0));
    EXPECT_EQ(decode_slot(whole).kind, slot_kind::head);
    for (std::size_t i = 0; i != slot_bytes; ++i) {
        auto changed = whole;
        changed[i] ^= std::byte{1};
        EXPECT_EQ(decode_slot(changed).kind, slot_kind::torn) << i;
        // Half of it is already released.
        auto half = whole;
        std::fill_n(half.begin(), i + 1, std::byte{});
        EXPECT_EQ(decode_slot(half).kind, i + 1 == slot_bytes ? slot_kind::free : slot_kind::torn) << i;
    }
    EXPECT_EQ(decode_slot(bytes_view(whole).first(127).value()).kind, slot_kind::torn);
}

TEST(a_header, comes_back_as_it_was_written_with_its_live_pages) {
    header written{.generation = 5,
                   .created_s = 1'800'000'000,
                   .first_known_good = 1000 * page_bytes,
                   .first_after_hole_punch = 256 * page_bytes,
                   .ring_pages = ring_pages_usual,
                   .live_pages = {}};
    std::array<std::byte, page_bytes> page;
    EXPECT_EQ(encode(written, page), header_bytes);
    EXPECT_EQ(decode_header(page), written);
    for (std::size_t i = 0; i != live_pages_max; ++i)
        written.live_pages.push_back((i + 1) * page_bytes);
    EXPECT_EQ(encode(written, page), ring_end_offset);
    EXPECT_EQ(decode_header(page), written);
    page[ring_end_offset] ^= std::byte{1};
    EXPECT_EQ(decode_header(page), written) << "an append to a ring changes the bytes after them";
    page[ring_end_offset - 1] ^= std::byte{1};
    EXPECT_FALSE(decode_header(page)) << "the hash covers the live pages";
}

TEST(a_header, that_would_lead_astray_is_refused_even_with_its_hash) {
    std::array<std::byte, page_bytes> page;
    const auto is_taken = [&](const header& written) {
        encode(written, page);
        return decode_header(page).has_value();
    };
    EXPECT_TRUE(is_taken({}));
    EXPECT_FALSE(is_taken({.first_known_good = page_bytes + slot_bytes}));
    EXPECT_FALSE(is_taken({.first_known_good = 0, .first_after_hole_punch = 0}));
    EXPECT_FALSE(is_taken({.first_known_good = page_bytes, .first_after_hole_punch = 2 * page_bytes}));
    EXPECT_FALSE(is_taken({.first_known_good = 2 * page_bytes, .live_pages = {2 * page_bytes}}));
    EXPECT_FALSE(
        is_taken({.first_known_good = 9 * page_bytes, .live_pages = {3 * page_bytes, 3 * page_bytes}}));
    EXPECT_FALSE(is_taken({.first_known_good = 9 * page_bytes, .live_pages = {3 * page_bytes + slot_bytes}}));
    EXPECT_FALSE(decode_header({}));
}

}  // namespace
}  // namespace sluice::fsmutex::queue_format
