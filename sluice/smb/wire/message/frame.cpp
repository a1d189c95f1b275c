#include "sluice/smb/wire/message/frame.hpp"

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {

decoded<std::size_t> decode_frame_prefix(bytes_view received, std::size_t length_max) noexcept {
    const auto prefix = received.take<be32>();
    if (!prefix) return std::unexpected(decode_error::truncated);
    if (prefix->value() > frame_bytes_max) return std::unexpected(decode_error::bad_protocol_id);
    if (prefix->value() > length_max) return std::unexpected(decode_error::too_long);
    return prefix->value();
}

void encode_frame_prefix(byte_writer& writer, std::size_t length) noexcept {
    ENSURE(length <= frame_bytes_max, "split the compound");
    writer.put(be32(static_cast<std::uint32_t>(length)));
}

decoded<frame_kind> kind_of_frame(bytes_view frame) noexcept {
    const auto id = frame.take<be32>();
    if (!id) return std::unexpected(decode_error::truncated);
    switch (id->value()) {
        case 0xfe534d42:
            return frame_kind::smb2;
        case 0xff534d42:
            return frame_kind::smb1;
        case 0xfd534d42:
            return frame_kind::encrypted;
        case 0xfc534d42:
            return frame_kind::compressed;
        default:
            return std::unexpected(decode_error::bad_protocol_id);
    }
}

}  // namespace sluice::smb::wire
