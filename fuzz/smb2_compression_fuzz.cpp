// Compressed messages: untrusted frames are decompressed, and data come back from compression. The
// first byte has the algorithms (bits 0 to 3), whether messages are chained (4), and what happens
// to the other bytes: they are a frame, or data to compress (5).

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "sluice/smb/wire/compression/compressed_message.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

constexpr std::size_t message_bytes_max = 1U << 20;
constexpr compression_limits accepted = compression_limits_for(message_bytes_max, message_bytes_max);
constexpr std::size_t head_bytes_max = 80;

negotiated_compression agreement_of(unsigned options) {
    std::vector<le16> codes;
    for (unsigned i = 0; i != 4; ++i)
        if ((options >> i & 1U) != 0) codes.emplace_back(static_cast<std::uint16_t>(i + 1));
    return negotiated_compression::choose(
        {.flags = (options & 16U) != 0 ? compression_chained : 0,
         .algorithms = code_list<compression_algorithm>(std::span<const le16>(codes))});
}

void check_frame(bytes_view frame, const negotiated_compression& agreed) {
    const auto size = decompressed_bytes(frame, agreed, accepted);
    if (not size) return;
    ENSURE(*size <= accepted.message_bytes_max);
    // In a block of its own, so that the sanitizer detects each access outside.
    const auto message = std::make_unique<std::byte[]>(*size);
    (void)decompress_message(frame, agreed, {message.get(), *size});
}

void check_round_trip(bytes_view data, const negotiated_compression& agreed) {
    if (not agreed.is_on()) return;
    static const auto work = std::make_unique<compression_work_area>();
    const std::size_t head_bytes = std::min(data.size(), head_bytes_max);
    const std::size_t room_bytes = data.size();
    const auto room = std::make_unique<std::byte[]>(room_bytes);
    const auto size = compress_message({.head = *data.first(head_bytes), .data = *data.from(head_bytes)},
                                       agreed, {room.get(), room_bytes}, *work);
    if (not size) return;
    ENSURE(*size <= room_bytes);
    const bytes_view frame(room.get(), *size);
    const auto message_bytes = decompressed_bytes(frame, agreed, accepted);
    ENSURE(message_bytes and *message_bytes == data.size());
    std::vector<std::byte> message(*message_bytes);
    ENSURE(decompress_message(frame, agreed, mutable_bytes(message)).has_value());
    ENSURE(bytes_view(message) == data);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned options = data[0];
    const auto copy = std::make_unique<std::byte[]>(size - 1);
    std::copy_n(reinterpret_cast<const std::byte*>(data) + 1, size - 1, copy.get());
    const bytes_view rest(copy.get(), size - 1);
    if ((options & 32U) != 0)
        check_round_trip(rest, agreement_of(options));
    else
        check_frame(rest, agreement_of(options));
    return 0;
}
