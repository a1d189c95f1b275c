#include "sluice/smb/wire/create/create_context_list.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/wire/wire_testing.hpp"

namespace sluice::smb::wire {
namespace {

message_bytes list_of(std::initializer_list<create_context> contexts) {
    message_bytes room(1024);
    byte_writer writer{mutable_bytes(room)};
    create_context_writer list(writer);
    for (const create_context& context : contexts)
        list.put(context);
    ENSURE(list.list_bytes() == writer.position());
    return copy_of(*writer.finish());
}

const create_context first{.name = text_bytes("AlSi"), .data = text_bytes("12345678")};
const create_context second{.name = text_bytes("MxAc"), .data = {}};
const create_context third{.name = text_bytes("sixteen in a row"), .data = text_bytes("x")};

/// Returns the error of decoding the first context of the bytes, with `field` at `offset`.
template <wire_type Field>
decode_error error_with(message_bytes list, std::size_t offset, const Field& field) {
    const bytes_view bytes = bytes_of(field);
    std::copy(bytes.begin(), bytes.end(), list.begin() + static_cast<long>(offset));
    create_context_reader reader(list);
    const auto context = reader.next();
    EXPECT_FALSE(context);
    EXPECT_TRUE(reader.done());
    return context ? decode_error{} : context.error();
}

TEST(create_context_list, is_unchanged_by_a_round_trip) {
    const message_bytes list = list_of({first, second, third});
    create_context_reader reader(list);
    EXPECT_EQ(reader.next(), first);
    EXPECT_EQ(reader.next(), second);
    EXPECT_FALSE(reader.done());
    EXPECT_EQ(reader.next(), third);
    EXPECT_TRUE(reader.done());
}

TEST(create_context_list, has_the_bytes_that_windows_writes) {
    const message_bytes list = list_of({first, second});
    EXPECT_EQ(list, some_bytes({32,  0,   0,   0,   16,  0,   4,   0,    //
                                0,   0,   24,  0,   8,   0,   0,   0,    //
                                'A', 'l', 'S', 'i', 0,   0,   0,   0,    //
                                '1', '2', '3', '4', '5', '6', '7', '8',  //
                                0,   0,   0,   0,   16,  0,   4,   0,    //
                                0,   0,   0,   0,   0,   0,   0,   0,    //
                                'M', 'x', 'A', 'c', 0,   0,   0,   0}));
}

TEST(create_context_list, without_bytes_has_no_contexts) {
    EXPECT_TRUE(create_context_reader(bytes_view{}).done());
}

TEST(create_context_list, a_misplaced_next_context_is_rejected) {
    const message_bytes list = list_of({first, second});
    EXPECT_EQ(error_with(list, 0, le32(33)), decode_error::misaligned);
    EXPECT_EQ(error_with(list, 0, le32(8)), decode_error::bad_chain);
    EXPECT_EQ(error_with(list, 0, le32(56)), decode_error::range_outside_message);
    EXPECT_EQ(error_with(list, 0, le32(0xfffffff8)), decode_error::range_outside_message);
}

TEST(create_context_list, a_misplaced_or_too_short_name_is_rejected) {
    const message_bytes list = list_of({first, second});
    // In the fixed part.
    EXPECT_EQ(error_with(list, 4, le16(15)), decode_error::range_outside_message);
    // Into the next context.
    EXPECT_EQ(error_with(list, 4, le16(29)), decode_error::range_outside_message);
    EXPECT_EQ(error_with(list, 6, le16(3)), decode_error::missing);
}

TEST(create_context_list, misplaced_data_are_rejected) {
    const message_bytes list = list_of({first, second});
    EXPECT_EQ(error_with(list, 10, le16(19)), decode_error::range_outside_message);  // in the name
    // Into the next context.
    EXPECT_EQ(error_with(list, 10, le16(25)), decode_error::range_outside_message);
    EXPECT_EQ(error_with(list, 12, le32(0xffffffff)), decode_error::range_outside_message);
}

TEST(create_context_list, truncation_at_any_byte_is_rejected) {
    const message_bytes list = list_of({third});
    for (std::size_t length = 1; length < list.size(); ++length) {
        create_context_reader reader(*bytes_view(list).first(length));
        const auto cut = reader.next();
        ASSERT_FALSE(cut);
        EXPECT_EQ(cut.error(), length < 16 ? decode_error::truncated : decode_error::range_outside_message);
    }
}

TEST(create_context_list, more_contexts_than_allowed_are_rejected) {
    message_bytes room(8192);
    byte_writer writer{mutable_bytes(room)};
    create_context_writer list(writer);
    for (std::size_t i = 0; i <= create_contexts_max; ++i)
        list.put(second);
    create_context_reader reader(*writer.finish());
    for (std::size_t i = 0; i < create_contexts_max; ++i)
        ASSERT_TRUE(reader.next());
    EXPECT_EQ(reader.next(), std::unexpected(decode_error::too_many));
    EXPECT_TRUE(reader.done());
}

}  // namespace
}  // namespace sluice::smb::wire
