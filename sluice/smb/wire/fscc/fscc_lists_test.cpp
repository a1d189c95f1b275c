#include <gtest/gtest.h>

#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/smb/wire/fscc/fscc_notify.hpp"
#include "sluice/smb/wire/fscc/fscc_testing.hpp"

namespace sluice::smb::wire {
namespace {

using testing::text_of;

bytes_view as_bytes(std::string_view text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

TEST(entry_list, links_entries_at_their_alignment_with_zeros_between) {
    std::vector<std::byte> room(64, std::byte{0xAA});
    entry_list_writer list(room, 8);
    const auto one_byte = [](byte_writer& writer) -> decoded<void> {
        writer.put(le8(0x55));
        return {};
    };
    ASSERT_EQ(list.put(one_byte), entry_outcome::written);
    ASSERT_EQ(list.put(one_byte), entry_outcome::written);
    const std::vector<std::byte> bytes(list.bytes().begin(), list.bytes().end());
    const std::vector<unsigned> expected = {8, 0, 0, 0, 0x55, 0, 0, 0, 0, 0, 0, 0, 0x55};
    ASSERT_EQ(bytes.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<unsigned>(bytes[i]), expected[i]) << i;
}

TEST(entry_list, an_entry_that_does_not_fit_leaves_the_list_unchanged_for_every_buffer_size) {
    for (std::size_t size = 0; size < 120; ++size) {
        std::vector<std::byte> room(size);
        stream_list_writer writer{mutable_bytes(room)};
        std::size_t fitted = 0;
        for (; fitted < 4; ++fitted)
            if (writer.put({.name = ":s:$DATA", .size_bytes = fitted}) != entry_outcome::written) break;
        stream_list_reader reader(writer.bytes());
        for (std::size_t i = 0; i < fitted; ++i) {
            const auto stream = reader.next();
            ASSERT_TRUE(stream and *stream) << size;
            EXPECT_EQ((*stream)->size_bytes, i);
        }
        const auto end = reader.next();
        ASSERT_TRUE(end.has_value());
        EXPECT_FALSE(end->has_value());
        EXPECT_EQ(fitted, size < 40 ? 0 : size < 80 ? 1 : 2);
    }
}

TEST(entry_list, a_name_that_is_not_utf8_is_skipped_and_the_list_continues) {
    std::vector<std::byte> room(256);
    stream_list_writer writer{mutable_bytes(room)};
    EXPECT_EQ(writer.put({.name = ":a:$DATA"}), entry_outcome::written);
    EXPECT_EQ(writer.put({.name = "\xFF"}), entry_outcome::bad_text);
    EXPECT_EQ(writer.put({.name = ":b:$DATA"}), entry_outcome::written);
    stream_list_reader reader(writer.bytes());
    EXPECT_EQ(text_of((*reader.next())->name_utf16), ":a:$DATA");
    EXPECT_EQ(text_of((*reader.next())->name_utf16), ":b:$DATA");
    EXPECT_FALSE(reader.next()->has_value());
}

TEST(entry_list, a_next_entry_inside_this_one_or_outside_the_list_is_a_bad_chain) {
    for (const std::uint32_t distance : {1u, 23u, 48u, 49u, 0xFFFFFFFFu}) {
        std::vector<std::byte> bytes(48);
        const le32 next(distance);
        std::copy_n(bytes_of(next).begin(), 4, bytes.begin());
        stream_list_reader reader{bytes_view(bytes)};
        const auto stream = reader.next();
        ASSERT_FALSE(stream.has_value()) << distance;
        EXPECT_EQ(stream.error(), decode_error::bad_chain);
        EXPECT_FALSE(reader.next()->has_value()) << "the reader returned an entry after an error";
    }
}

TEST(entry_list, an_invalid_entry_ends_the_list) {
    std::vector<std::byte> room(128);
    stream_list_writer writer{mutable_bytes(room)};
    ASSERT_EQ(writer.put({.name = ":a:$DATA"}), entry_outcome::written);
    ASSERT_EQ(writer.put({.name = ":b:$DATA"}), entry_outcome::written);
    room[4] = std::byte{200};
    stream_list_reader reader(writer.bytes());
    EXPECT_EQ(reader.next().error(), decode_error::range_outside_message);
    EXPECT_FALSE(reader.next()->has_value());
}

TEST(stream_list, streams_round_trip) {
    std::vector<std::byte> room(256);
    stream_list_writer writer{mutable_bytes(room)};
    ASSERT_EQ(writer.put({.name = "::$DATA", .size_bytes = 5, .allocation_bytes = 4096}),
              entry_outcome::written);
    ASSERT_EQ(writer.put({.name = ":ä:$DATA", .size_bytes = 6, .allocation_bytes = 7}),
              entry_outcome::written);
    stream_list_reader reader(writer.bytes());
    const auto first = *reader.next();
    EXPECT_EQ(text_of(first->name_utf16), "::$DATA");
    EXPECT_EQ(first->size_bytes, 5u);
    EXPECT_EQ(first->allocation_bytes, 4096u);
    const auto second = *reader.next();
    EXPECT_EQ(text_of(second->name_utf16), ":ä:$DATA");
    EXPECT_EQ(second->allocation_bytes, 7u);
    EXPECT_FALSE(reader.next()->has_value());
}

TEST(ea_list, attributes_round_trip) {
    std::vector<std::byte> room(256);
    ea_list_writer writer{mutable_bytes(room)};
    ASSERT_EQ(writer.put({.name = "user.a", .value = as_bytes("value"), .needed = true}),
              entry_outcome::written);
    ASSERT_EQ(writer.put({.name = "b", .value = {}}), entry_outcome::written);
    ea_list_reader reader(writer.bytes());
    const auto first = *reader.next();
    EXPECT_EQ(first->name, "user.a");
    EXPECT_TRUE(std::ranges::equal(first->value, as_bytes("value")));
    EXPECT_TRUE(first->needed);
    const auto second = *reader.next();
    EXPECT_EQ(second->name, "b");
    EXPECT_TRUE(second->value.empty());
    EXPECT_FALSE(second->needed);
    EXPECT_FALSE(reader.next()->has_value());
}

TEST(ea_list, names_without_a_terminator_or_with_a_zero_inside_are_rejected) {
    std::vector<std::byte> room(64);
    ea_list_writer writer{mutable_bytes(room)};
    ASSERT_EQ(writer.put({.name = "name", .value = as_bytes("v")}), entry_outcome::written);
    std::vector<std::byte> bytes(writer.bytes().begin(), writer.bytes().end());
    bytes[8 + 4] = std::byte{'x'};
    EXPECT_EQ(ea_list_reader(bytes).next().error(), decode_error::bad_value);
    bytes[8 + 4] = bytes[8 + 2] = std::byte{0};
    EXPECT_EQ(ea_list_reader(bytes).next().error(), decode_error::bad_value);

    EXPECT_EQ(writer.put({.name = "", .value = {}}), entry_outcome::bad_text);
    EXPECT_EQ(writer.put({.name = std::string(256, 'n'), .value = {}}), entry_outcome::bad_text);
    EXPECT_EQ(writer.put({.name = std::string_view("a\0b", 3), .value = {}}), entry_outcome::bad_text);
}

TEST(ea_name_list, names_round_trip) {
    std::vector<std::byte> room(64);
    ea_name_list_writer writer{mutable_bytes(room)};
    ASSERT_EQ(writer.put("first"), entry_outcome::written);
    ASSERT_EQ(writer.put("second"), entry_outcome::written);
    ea_name_list_reader reader(writer.bytes());
    EXPECT_EQ(*reader.next(), "first");
    EXPECT_EQ(*reader.next(), "second");
    EXPECT_FALSE(reader.next()->has_value());
}

TEST(hard_link_list, links_round_trip_and_the_head_contains_the_required_length) {
    std::vector<std::byte> room(60);
    hard_link_list_writer writer{mutable_bytes(room)};
    ASSERT_EQ(writer.put({.directory_number = 5, .name = "ab"}), entry_outcome::written);
    ASSERT_EQ(writer.put({.directory_number = 6, .name = "c"}), entry_outcome::written);
    ASSERT_EQ(writer.put({.directory_number = 7, .name = "too much"}), entry_outcome::no_room);
    const auto reader = hard_link_list_reader::of(writer.finish(90));
    ASSERT_TRUE(reader.has_value());
    EXPECT_EQ(reader->bytes_needed(), 90u);
    hard_link_list_reader links = *reader;
    const auto first = *links.next();
    EXPECT_EQ(first->directory_number, 5u);
    EXPECT_EQ(text_of(first->name_utf16), "ab");
    EXPECT_EQ(text_of((*links.next())->name_utf16), "c");
    EXPECT_FALSE(links.next()->has_value());
}

TEST(hard_link_list, without_space_for_its_head_there_is_no_list) {
    std::vector<std::byte> room(7);
    hard_link_list_writer writer{mutable_bytes(room)};
    EXPECT_EQ(writer.put({.name = "a"}), entry_outcome::no_room);
    EXPECT_TRUE(writer.finish(0).empty());
    EXPECT_EQ(hard_link_list_reader::of(bytes_view(room)).error(), decode_error::truncated);
}

TEST(notify_list, changes_round_trip) {
    std::vector<std::byte> room(128);
    notify_writer writer{mutable_bytes(room)};
    ASSERT_EQ(writer.put({.action = notify_action::renamed_old_name, .name = "dir\\old"}),
              entry_outcome::written);
    ASSERT_EQ(writer.put({.action = notify_action::renamed_new_name, .name = "dir\\new name"}),
              entry_outcome::written);
    EXPECT_EQ(writer.count(), 2u);
    notify_reader reader(writer.bytes());
    const auto first = *reader.next();
    EXPECT_EQ(first->action, notify_action::renamed_old_name);
    EXPECT_EQ(text_of(first->name_utf16), "dir\\old");
    const auto second = *reader.next();
    EXPECT_EQ(second->action, notify_action::renamed_new_name);
    EXPECT_EQ(text_of(second->name_utf16), "dir\\new name");
    EXPECT_FALSE(reader.next()->has_value());
}

}  // namespace
}  // namespace sluice::smb::wire
