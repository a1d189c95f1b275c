#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/message/header.hpp"

// Helpers of the message tests: messages in memory, and the properties of every decoder.

namespace sluice::smb::wire {

using message_bytes = std::vector<std::byte>;

inline message_bytes some_bytes(std::initializer_list<int> values) {
    message_bytes bytes;
    for (const int value : values)
        bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

inline message_bytes copy_of(bytes_view bytes) {
    return {bytes.begin(), bytes.end()};
}

inline bytes_view text_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

/// Returns a message of a plain header and the body of `args`.
template <class Args>
message_bytes message_of(const Args& args) {
    message_bytes room(64 * 1024);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, header{.command = command::negotiate});
    encode(writer, args);
    const auto written = writer.finish();
    ENSURE(written.has_value());
    return copy_of(*written);
}

template <class Args>
message_bytes body_of(const Args& args) {
    const message_bytes message = message_of(args);
    return {message.begin() + header_bytes, message.end()};
}

/// Decodes a message in memory that has a valid header.
template <class Decode>
auto decode_bytes(const message_bytes& message, Decode decode) {
    const auto view = message_view::of(message);
    ENSURE(view.has_value());
    return decode(*view);
}

/// Checks that decode(encode(args)) == args, and that the result encodes to the same bytes.
template <class Args, class Decode>
void expect_round_trip(const Args& args, Decode decode) {
    const message_bytes message = message_of(args);
    const auto again = decode_bytes(message, decode);
    ASSERT_TRUE(again) << name_of(again.error());
    EXPECT_TRUE(*again == args) << "decoding returned other arguments";
    EXPECT_EQ(message_of(*again), message);
}

template <class Decode>
void expect_refused(const message_bytes& message, decode_error why, Decode decode) {
    const auto refused = decode_bytes(message, decode);
    ASSERT_FALSE(refused) << "accepted instead of rejected with " << name_of(why);
    EXPECT_EQ(name_of(refused.error()), name_of(why));
}

/// Returns `message` with the bytes at `offset`, counted from the body, replaced by `field`.
template <wire_type Field>
message_bytes with_field(message_bytes message, std::size_t offset, const Field& field) {
    const auto place =
        mutable_bytes(message).slice({.offset = header_bytes + offset, .length = sizeof(Field)});
    ENSURE(place.has_value());
    const bytes_view bytes = bytes_of(field);
    std::copy(bytes.begin(), bytes.end(), place->begin());
    return message;
}

/// Checks that every body shorter than its fixed part is `truncated`, and that another
/// StructureSize is rejected.
template <class Args, class Decode>
void expect_fixed_part_checked(const Args& args, std::size_t fixed_bytes, Decode decode) {
    const message_bytes message = message_of(args);
    ASSERT_GE(message.size(), header_bytes + fixed_bytes);
    for (std::size_t length = 0; length < fixed_bytes; ++length) {
        const message_bytes cut(message.begin(), message.begin() + static_cast<long>(header_bytes + length));
        expect_refused(cut, decode_error::truncated, decode);
    }
    const le16 size = *bytes_view(message).take_at<le16>(header_bytes);
    for (const int off_by : {-1, 1}) {
        const le16 other(static_cast<std::uint16_t>(size.value() + off_by));
        expect_refused(with_field(message, 0, other), decode_error::bad_structure_size, decode);
    }
}

/// Fields of an offset and a length in a body.
template <wire_type Offset, wire_type Length>
struct range_fields {
    std::size_t offset_at = 0;
    std::size_t length_at = 0;
};

/// Checks that the range in `fields` is rejected as soon as any byte of it is outside the variable
/// part, and accepted at any offset if it is empty. `args` has at least two bytes there.
template <class Offset, class Length, class Args, class Decode>
void expect_range_checked(const Args& args, range_fields<Offset, Length> fields, Decode decode) {
    const message_bytes message = message_of(args);
    const std::size_t offset = bytes_view(message).take_at<Offset>(header_bytes + fields.offset_at)->value();
    ASSERT_GE(message.size(), offset + 2);
    const auto with_range = [&](std::size_t from, std::size_t length) {
        using offset_value = typename Offset::value_type;
        using length_value = typename Length::value_type;
        return with_field(with_field(message, fields.offset_at, Offset(static_cast<offset_value>(from))),
                          fields.length_at, Length(static_cast<length_value>(length)));
    };
    const std::size_t most = message.size() - offset;
    const auto refuse = [&](std::size_t from, std::size_t length) {
        expect_refused(with_range(from, length), decode_error::range_outside_message, decode);
    };
    refuse(offset, most + 2 + most % 2);
    refuse(message.size(), 2);
    refuse(std::numeric_limits<typename Offset::value_type>::max(), 2);
    refuse(0, 2);
    refuse(header_bytes, 2);
    EXPECT_TRUE(decode_bytes(with_range(0, 0), decode));
    EXPECT_TRUE(decode_bytes(with_range(std::numeric_limits<typename Offset::value_type>::max(), 0), decode));
}

}  // namespace sluice::smb::wire
