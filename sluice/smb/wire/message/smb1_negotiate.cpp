#include "sluice/smb/wire/message/smb1_negotiate.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::uint32_t smb1_id = 0x424d53ff;  // FF 'S' 'M' 'B'
constexpr std::uint8_t com_negotiate = 0x72;
constexpr std::uint8_t flags_reply = 0x80;
constexpr std::byte dialect_mark{0x02};
constexpr std::string_view dialect_2_002 = "SMB 2.002";
constexpr std::string_view dialect_wildcard = "SMB 2.???";

struct smb1_negotiate_request {
    le32 protocol_id;                   //  0
    le8 command;                        //  4
    le32 status;                        //  5
    le8 flags;                          //  9
    le16 flags2;                        // 10
    std::array<std::byte, 20> ignored;  // 12  process, signature, tree, user and multiplex ids
    le8 word_count;                     // 32  always 0
    le16 byte_count;                    // 33
};
static_assert(sizeof(smb1_negotiate_request) == 35 and wire_type<smb1_negotiate_request>);
static_assert(offsetof(smb1_negotiate_request, flags) == 9 and
              offsetof(smb1_negotiate_request, word_count) == 32);

bool equals(bytes_view bytes, std::string_view text) noexcept {
    return std::equal(bytes.begin(), bytes.end(), text.begin(), text.end(),
                      [](std::byte a, char b) { return static_cast<char>(a) == b; });
}

void put_dialect(byte_writer& writer, std::string_view name) noexcept {
    writer.put_bytes({&dialect_mark, 1});
    writer.put_bytes(std::as_bytes(std::span(name)));
    writer.put_zeros(1);
}

}  // namespace

decoded<smb1_negotiate> decode_smb1_negotiate(bytes_view frame) noexcept {
    byte_reader reader(frame);
    const auto request = reader.take<smb1_negotiate_request>();
    if (!request) return std::unexpected(decode_error::truncated);
    if (request->protocol_id.value() != smb1_id) return std::unexpected(decode_error::bad_protocol_id);
    if (request->command.value() != com_negotiate or (request->flags.value() & flags_reply) != 0 or
        request->word_count.value() != 0) {
        return std::unexpected(decode_error::bad_value);
    }
    const auto listed = reader.take_bytes(request->byte_count.value());
    if (!listed) return std::unexpected(decode_error::range_outside_message);

    smb1_negotiate offered;
    for (bytes_view rest = *listed; !rest.empty();) {
        if (rest[0] != dialect_mark) return std::unexpected(decode_error::bad_value);
        const auto end = std::find(rest.begin(), rest.end(), std::byte{0});
        if (end == rest.end()) return std::unexpected(decode_error::bad_value);
        const bytes_view name(std::span(rest.begin() + 1, end));
        offered.smb_2_002 = offered.smb_2_002 or equals(name, dialect_2_002);
        offered.smb_2_wildcard = offered.smb_2_wildcard or equals(name, dialect_wildcard);
        rest = std::span(end + 1, rest.end());
    }
    return offered;
}

void encode(byte_writer& writer, const smb1_negotiate& negotiate) noexcept {
    constexpr std::string_view classic = "NT LM 0.12";
    constexpr auto dialect_bytes = [](std::string_view name) { return name.size() + 2; };
    const std::size_t list_bytes = dialect_bytes(classic) +
                                   (negotiate.smb_2_002 ? dialect_bytes(dialect_2_002) : 0) +
                                   (negotiate.smb_2_wildcard ? dialect_bytes(dialect_wildcard) : 0);
    writer.put(smb1_negotiate_request{.protocol_id = le32(smb1_id),
                                      .command = le8(com_negotiate),
                                      .status = {},
                                      .flags = {},
                                      // Unicode, extended security: as clients send it.
                                      .flags2 = le16(0xc853),
                                      .ignored = {},
                                      .word_count = {},
                                      .byte_count = le16(static_cast<std::uint16_t>(list_bytes))});
    put_dialect(writer, classic);
    if (negotiate.smb_2_002) put_dialect(writer, dialect_2_002);
    if (negotiate.smb_2_wildcard) put_dialect(writer, dialect_wildcard);
}

}  // namespace sluice::smb::wire
