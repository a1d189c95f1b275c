#include "sluice/smb/auth/logon/ntlm_messages.hpp"

#include "sluice/smb/auth/limits.hpp"

namespace sluice::smb::auth::ntlm {
namespace {

using wire::decode_error;

constexpr std::array<std::byte, 8> signature = {std::byte{'N'}, std::byte{'T'}, std::byte{'L'},
                                                std::byte{'M'}, std::byte{'S'}, std::byte{'S'},
                                                std::byte{'P'}, std::byte{0}};

enum class kind : std::uint32_t { negotiate = 1, challenge = 2, authenticate = 3 };

struct header {
    std::array<std::byte, 8> signature = ntlm::signature;  // 0
    le32 type;                                             // 8
};
static_assert(sizeof(header) == 12 and alignof(header) == 1);

// The position and length of a value in the message.
struct payload_field {
    le16 length;
    le16 length_max;  // "SHOULD be ignored", [MS-NLMP] 2.2.1.2
    le32 offset;
};
static_assert(sizeof(payload_field) == 8 and alignof(payload_field) == 1);

// "Windows 10.0, revision 15": only the layout matters, [MS-NLMP] 2.2.2.10.
constexpr std::array<std::byte, 8> our_version = {std::byte{10}, {}, {}, {}, {}, {}, {}, std::byte{15}};

struct negotiate_fixed {
    header head;                                     //  0
    le32 flags;                                      // 12
    payload_field domain;                            // 16
    payload_field workstation;                       // 24
    std::array<std::byte, 8> version = our_version;  // 32
};
static_assert(sizeof(negotiate_fixed) == 40 and alignof(negotiate_fixed) == 1);
static_assert(offsetof(negotiate_fixed, flags) == 12 and offsetof(negotiate_fixed, version) == 32);

struct challenge_fixed {
    header head;                        //  0
    payload_field target_name;          // 12
    le32 flags;                         // 20
    challenge_bytes server_challenge;   // 24
    std::array<std::byte, 8> reserved;  // 32
    payload_field target_info;          // 40
};
static_assert(sizeof(challenge_fixed) == 48 and alignof(challenge_fixed) == 1);
static_assert(offsetof(challenge_fixed, flags) == 20 and offsetof(challenge_fixed, target_info) == 40);

struct authenticate_fixed {
    header head;                          //  0
    payload_field lm_response;            // 12
    payload_field nt_response;            // 20
    payload_field domain;                 // 28
    payload_field user;                   // 36
    payload_field workstation;            // 44
    payload_field encrypted_session_key;  // 52
    le32 flags;                           // 60
};
static_assert(sizeof(authenticate_fixed) == 64 and alignof(authenticate_fixed) == 1);
static_assert(offsetof(authenticate_fixed, user) == 36 and offsetof(authenticate_fixed, flags) == 60);

struct client_blob_fixed {
    le8 response_type = le8(1);
    le8 response_type_max = le8(1);
    std::array<std::byte, 6> reserved_1{};
    le64 filetime;
    challenge_bytes client_challenge{};
    std::array<std::byte, 4> reserved_2{};
};
static_assert(sizeof(client_blob_fixed) == 28 and alignof(client_blob_fixed) == 1);

struct av_header {
    le16 id;
    le16 length;
};
static_assert(sizeof(av_header) == 4 and alignof(av_header) == 1);

// Decodes the fixed part of a message of that kind.
template <class Fixed>
wire::decoded<Fixed> take_fixed(bytes_view token, kind expected) noexcept {
    if (!is_ntlm(token)) return std::unexpected(decode_error::bad_protocol_id);
    const auto fixed = token.take<Fixed>();
    if (!fixed) return std::unexpected(decode_error::truncated);
    if (fixed->head.type.value() != static_cast<std::uint32_t>(expected)) {
        return std::unexpected(decode_error::bad_value);
    }
    return *fixed;
}

// Sets `value` to the bytes at `field`. An empty field may have any offset. Returns false if it is
// outside.
bool take_payload(bytes_view token, const payload_field& field, bytes_view& value) noexcept {
    if (field.length.value() == 0) return true;
    const auto found = token.slice({.offset = field.offset.value(), .length = field.length.value()});
    if (found) value = *found;
    return found.has_value();
}

void append(std::vector<std::byte>& bytes, bytes_view more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
}

// Appends a value to the message and returns its position.
payload_field append_payload(std::vector<std::byte>& message, bytes_view value) {
    ENSURE(value.size() <= UINT16_MAX);
    const le16 length(static_cast<std::uint16_t>(value.size()));
    const payload_field field = {
        .length = length, .length_max = length, .offset = le32(static_cast<std::uint32_t>(message.size()))};
    append(message, value);
    return field;
}

template <class Fixed>
void put_front(std::vector<std::byte>& message, Fixed& fixed, kind type) {
    fixed.head.type = le32(static_cast<std::uint32_t>(type));
    std::memcpy(message.data(), &fixed, sizeof(fixed));
}

}  // namespace

wire::decoded<av_pairs> av_pairs::decode(bytes_view bytes) noexcept {
    byte_reader pairs(bytes);
    for (std::size_t count = 0; count <= limits::av_pairs_max; ++count) {
        const std::size_t start = pairs.position();
        const auto next = pairs.take<av_header>();
        if (!next) return std::unexpected(decode_error::missing);
        if (next->id.value() == static_cast<std::uint16_t>(av_id::end)) {
            return av_pairs(*bytes.first(start));
        }
        if (!pairs.skip(next->length.value())) return std::unexpected(decode_error::truncated);
    }
    return std::unexpected(decode_error::too_many);
}

std::optional<bytes_view> av_pairs::find(av_id which) const noexcept {
    byte_reader pairs(pairs_);
    while (const auto next = pairs.take<av_header>()) {
        const auto value = pairs.take_bytes(next->length.value());
        if (!value) return std::nullopt;
        if (next->id.value() == static_cast<std::uint16_t>(which)) return value;
    }
    return std::nullopt;
}

bool av_pairs::announce_mic() const noexcept {
    const auto value = find(av_id::flags);
    const auto flags = value ? value->take<le32>() : std::nullopt;
    return flags and (flags->value() & av_flag_has_mic) != 0;
}

av_pair_writer& av_pair_writer::add(av_id which, bytes_view value) {
    ENSURE(value.size() <= UINT16_MAX);
    const av_header head = {.id = le16(static_cast<std::uint16_t>(which)),
                            .length = le16(static_cast<std::uint16_t>(value.size()))};
    append(bytes_, bytes_of(head));
    append(bytes_, value);
    return *this;
}

av_pair_writer& av_pair_writer::add_all(bytes_view pairs) {
    append(bytes_, pairs);
    return *this;
}

std::vector<std::byte> av_pair_writer::finish() {
    add(av_id::end, {});
    return std::move(bytes_);
}

bool is_ntlm(bytes_view token) noexcept {
    const auto found = token.take<std::array<std::byte, 8>>();
    return found and * found == signature;
}

wire::decoded<negotiate_message> decode_negotiate(bytes_view token) noexcept {
    // Messages of some clients end after the flags.
    struct beginning {
        header head;
        le32 flags;
    };
    const auto fixed = take_fixed<beginning>(token, kind::negotiate);
    if (!fixed) return std::unexpected(fixed.error());
    return negotiate_message{.flags = fixed->flags.value()};
}

wire::decoded<challenge_message> decode_challenge(bytes_view token) noexcept {
    const auto fixed = take_fixed<challenge_fixed>(token, kind::challenge);
    if (!fixed) return std::unexpected(fixed.error());
    challenge_message message{.flags = fixed->flags.value(),
                              .server_challenge = fixed->server_challenge,
                              .target_name = {},
                              .target_info = {}};
    if (!take_payload(token, fixed->target_name, message.target_name) or
        !take_payload(token, fixed->target_info, message.target_info)) {
        return std::unexpected(decode_error::range_outside_message);
    }
    return message;
}

wire::decoded<authenticate_message> decode_authenticate(bytes_view token) noexcept {
    const auto fixed = take_fixed<authenticate_fixed>(token, kind::authenticate);
    if (!fixed) return std::unexpected(fixed.error());
    authenticate_message message;
    message.flags = fixed->flags.value();
    message.mic = token.take_at<mic_bytes>(mic_offset);
    if (!take_payload(token, fixed->lm_response, message.lm_response) or
        !take_payload(token, fixed->nt_response, message.nt_response) or
        !take_payload(token, fixed->domain, message.domain) or
        !take_payload(token, fixed->user, message.user) or
        !take_payload(token, fixed->workstation, message.workstation) or
        !take_payload(token, fixed->encrypted_session_key, message.encrypted_session_key)) {
        return std::unexpected(decode_error::range_outside_message);
    }
    return message;
}

wire::decoded<nt_v2_response> decode_nt_v2_response(bytes_view response) noexcept {
    const auto proof = response.take<std::array<std::byte, 16>>();
    if (!proof) return std::unexpected(decode_error::truncated);
    const bytes_view blob = *response.from(proof->size());
    const auto fixed = blob.take<client_blob_fixed>();
    if (!fixed) return std::unexpected(decode_error::truncated);
    if (fixed->response_type.value() != 1 or fixed->response_type_max.value() != 1) {
        return std::unexpected(decode_error::bad_value);
    }
    const auto pairs = av_pairs::decode(*blob.from(sizeof(client_blob_fixed)));
    if (!pairs) return std::unexpected(pairs.error());
    return nt_v2_response{.proof = *proof, .client_blob = blob, .pairs = *pairs};
}

std::vector<std::byte> encode(const negotiate_message& message) {
    std::vector<std::byte> bytes(sizeof(negotiate_fixed));
    negotiate_fixed fixed;
    fixed.flags = le32(message.flags);
    put_front(bytes, fixed, kind::negotiate);
    return bytes;
}

std::vector<std::byte> encode(const challenge_message& message) {
    std::vector<std::byte> bytes(sizeof(challenge_fixed));
    append(bytes, our_version);
    challenge_fixed fixed{};
    fixed.flags = le32(message.flags);
    fixed.server_challenge = message.server_challenge;
    fixed.target_name = append_payload(bytes, message.target_name);
    fixed.target_info = append_payload(bytes, message.target_info);
    put_front(bytes, fixed, kind::challenge);
    return bytes;
}

std::vector<std::byte> encode(const authenticate_message& message) {
    std::vector<std::byte> bytes(sizeof(authenticate_fixed));
    append(bytes, our_version);
    append(bytes, message.mic.value_or(mic_bytes{}));
    authenticate_fixed fixed{};
    fixed.flags = le32(message.flags);
    fixed.domain = append_payload(bytes, message.domain);
    fixed.user = append_payload(bytes, message.user);
    fixed.workstation = append_payload(bytes, message.workstation);
    fixed.lm_response = append_payload(bytes, message.lm_response);
    fixed.nt_response = append_payload(bytes, message.nt_response);
    fixed.encrypted_session_key = append_payload(bytes, message.encrypted_session_key);
    put_front(bytes, fixed, kind::authenticate);
    return bytes;
}

std::vector<std::byte> encode_client_blob(const client_blob_contents& contents) {
    client_blob_fixed fixed;
    fixed.filetime = le64(contents.filetime);
    fixed.client_challenge = contents.client_challenge;
    std::vector<std::byte> bytes;
    append(bytes, bytes_of(fixed));
    append(bytes, contents.pairs);
    // Absent from the table of 2.2.2.7, but present in all its examples.
    append(bytes, std::array<std::byte, 4>{});
    return bytes;
}

}  // namespace sluice::smb::auth::ntlm
