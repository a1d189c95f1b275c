#include "sluice/smb/auth/logon/ntlm_crypto.hpp"

#include <cstring>
#include <string_view>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/auth/hmac.hpp"

namespace sluice::smb::auth::ntlm {
namespace {

// [MS-NLMP] 3.4.5.2 and 3.4.5.3; the terminating zero counts.
constexpr std::string_view client_signing("session key to client-to-server signing key magic constant\0", 59);
constexpr std::string_view server_signing("session key to server-to-client signing key magic constant\0", 59);
constexpr std::string_view client_sealing("session key to client-to-server sealing key magic constant\0", 59);
constexpr std::string_view server_sealing("session key to server-to-client sealing key magic constant\0", 59);

// NTLMSSP_MESSAGE_SIGNATURE with extended session security, 2.2.2.9.1.
struct wire_signature {
    le32 version = le32(1);
    std::array<std::byte, 8> checksum{};
    le32 sequence;
};
static_assert(sizeof(wire_signature) == 16 and alignof(wire_signature) == 1);

secret_bytes<16> key_with_magic(bytes_view key, std::string_view magic) noexcept {
    const std::array<bytes_view, 2> parts = {
        key, bytes_view(reinterpret_cast<const std::byte*>(magic.data()), magic.size())};
    return md5(parts);
}

// Converts UTF-16LE to upper case, unit by unit, for the hash of a user's name ([MS-NLMP] 3.3.2). A
// last odd byte is kept.
std::vector<std::byte> in_capitals(bytes_view utf16) {
    std::vector<std::byte> capitals(utf16.begin(), utf16.end());
    for (std::size_t at = 0; capitals.size() - at >= sizeof(le16); at += sizeof(le16)) {
        const le16 capital(upcase(static_cast<char16_t>(utf16.take_at<le16>(at)->value())));
        std::memcpy(capitals.data() + at, &capital, sizeof(capital));
    }
    return capitals;
}

std::size_t sealing_key_bytes(std::uint32_t flags) noexcept {
    if ((flags & flag::bits_128) != 0) return 16;
    return (flags & flag::bits_56) != 0 ? 7 : 5;
}

}  // namespace

secret_bytes<16> response_key(const nt_hash& hash, bytes_view user, bytes_view domain) {
    const std::vector<std::byte> capitals = in_capitals(user);
    const std::array<bytes_view, 2> parts = {capitals, domain};
    return hmac_md5(hash.view(), parts);
}

secret_bytes<16> proof_of(const secret_bytes<16>& response_key, const challenge_bytes& server,
                          bytes_view client_blob) noexcept {
    const std::array<bytes_view, 2> parts = {server, client_blob};
    return hmac_md5(response_key.view(), parts);
}

secret_bytes<16> session_base_key(const secret_bytes<16>& response_key, bytes_view proof) noexcept {
    return hmac_md5(response_key.view(), std::span(&proof, 1));
}

secret_bytes<16> exchange_key(const secret_bytes<16>& key_exchange_key, bytes_view session_key) noexcept {
    secret_bytes<16> exchanged(session_key);
    rc4(key_exchange_key.view()).apply(exchanged.mutable_view());
    return exchanged;
}

secret_bytes<16> mic_of(const secret_bytes<16>& exported_session_key, const conversation& messages) noexcept {
    static constexpr mic_bytes no_mic{};
    const auto before = messages.authenticate.first(mic_offset);
    const auto after = messages.authenticate.from(mic_offset + no_mic.size());
    ENSURE(before and after);
    const std::array<bytes_view, 5> parts = {messages.negotiate, messages.challenge, *before, no_mic, *after};
    return hmac_md5(exported_session_key.view(), parts);
}

message_signer::message_signer(const secret_bytes<16>& exported_session_key, signing_side side,
                               std::uint32_t flags) noexcept
    : signing_key_(key_with_magic(exported_session_key.view(),
                                  side == signing_side::client ? client_signing : server_signing)) {
    ENSURE((flags & flag::extended_session_security) != 0);
    if ((flags & flag::key_exchange) == 0) return;
    const bytes_view strong_part = *exported_session_key.view().first(sealing_key_bytes(flags));
    sealing_.emplace(
        key_with_magic(strong_part, side == signing_side::client ? client_sealing : server_sealing).view());
}

message_signer::signature message_signer::sign(bytes_view message) noexcept {
    wire_signature signature;
    signature.sequence = le32(sequence_++);
    const std::array<bytes_view, 2> parts = {bytes_of(signature.sequence), message};
    const auto code = hmac_md5(signing_key_.view(), parts);
    std::copy_n(code.view().begin(), signature.checksum.size(), signature.checksum.begin());
    if (sealing_) sealing_->apply(signature.checksum);
    return std::bit_cast<message_signer::signature>(signature);
}

bool message_signer::verify(bytes_view message, bytes_view claimed) noexcept {
    return equal_in_constant_time(sign(message), claimed);
}

}  // namespace sluice::smb::auth::ntlm
