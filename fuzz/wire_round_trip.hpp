#pragma once

#include <cstdint>
#include <vector>

#include "sluice/smb/wire/message/header.hpp"

// Common code of the targets for SMB2 messages.

namespace sluice::smb::wire {

/// Longer inputs are ignored: after encoding, overlapping ranges would exceed their 16-bit offsets.
inline constexpr std::size_t fuzzed_bytes_max = 16 * 1024;

/// If `decode` accepts `message`, checks that its arguments can be encoded, and are equal after
/// decoding them again: the decoder has checked everything on which the encoder relies.
template <class Decode>
void check_round_trip(const message_view& message, Decode decode) {
    const auto args = decode(message);
    if (!args) return;
    std::vector<std::byte> room(8 * message.bytes().size() + 1024);
    byte_writer writer{mutable_bytes(room)};
    encode(writer, message.header());
    encode(writer, *args);
    const auto written = writer.finish();
    ENSURE(written.has_value(), "a message grew eightfold");
    const auto again = message_view::of(*written);
    ENSURE(again.has_value() and again->header() == message.header());
    const auto args_again = decode(*again);
    ENSURE(args_again.has_value() and *args_again == *args, "other arguments come back");
}

}  // namespace sluice::smb::wire
