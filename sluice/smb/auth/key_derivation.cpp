#include "sluice/smb/auth/key_derivation.hpp"

#include "sluice/base/endian.hpp"
#include "sluice/smb/auth/hmac.hpp"

namespace sluice::smb::auth {
namespace {

// Returns a literal's characters with the terminating zero, which the derivation includes.
template <std::size_t Size>
bytes_view with_zero(const char (&text)[Size]) noexcept {
    return {reinterpret_cast<const std::byte*>(text), Size};
}

struct session_purposes {
    derivation_purpose signing;
    derivation_purpose client_to_server;
    derivation_purpose server_to_client;
    derivation_purpose application;
};

// "ServerIn " ends in a space, so that it is as long as "ServerOut".
session_purposes purposes_of_3_0() noexcept {
    return {.signing = {with_zero("SMB2AESCMAC"), with_zero("SmbSign")},
            .client_to_server = {with_zero("SMB2AESCCM"), with_zero("ServerIn ")},
            .server_to_client = {with_zero("SMB2AESCCM"), with_zero("ServerOut")},
            .application = {with_zero("SMB2APP"), with_zero("SmbRpc")}};
}

session_purposes purposes_of_3_1_1(bytes_view preauth_hash) noexcept {
    return {.signing = {with_zero("SMBSigningKey"), preauth_hash},
            .client_to_server = {with_zero("SMBC2SCipherKey"), preauth_hash},
            .server_to_client = {with_zero("SMBS2CCipherKey"), preauth_hash},
            .application = {with_zero("SMBAppKey"), preauth_hash}};
}

}  // namespace

void derive_key(bytes_view key, const derivation_purpose& purpose, mutable_bytes derived) noexcept {
    const hmac_sha256 keyed(key);
    ENSURE(derived.size() <= UINT32_MAX / 8);
    const be32 derived_bits(static_cast<std::uint32_t>(derived.size() * 8));
    const le8 separator(0);

    std::size_t done = 0;
    for (std::uint32_t number = 1; done < derived.size(); ++number) {
        const be32 counter(number);
        const std::array<bytes_view, 5> input = {bytes_of(counter), purpose.label, bytes_of(separator),
                                                 purpose.context, bytes_of(derived_bits)};
        const secret_bytes<32> block = keyed.code(input);
        const std::size_t taken = std::min(block.size, derived.size() - done);
        std::copy_n(block.view().begin(), taken, derived.begin() + done);
        done += taken;
    }
}

cipher_key::cipher_key(cipher_algorithm algorithm, bytes_view key) noexcept : algorithm_(algorithm) {
    ENSURE(key.size() == size_for(algorithm));
    std::copy(key.begin(), key.end(), bytes_.mutable_view().begin());
}

session_keys derive_session_keys(const session_key_material& from) noexcept {
    const session_purposes purposes =
        from.preauth_hash ? purposes_of_3_1_1(*from.preauth_hash) : purposes_of_3_0();

    secret_bytes<16> first;  // Session.SessionKey: truncated or padded to 16 bytes
    const std::size_t given = std::min(from.full_session_key.size(), first.size);
    std::copy_n(from.full_session_key.begin(), given, first.mutable_view().begin());
    const bool is_256_bit = cipher_key::size_for(from.cipher) == 32;
    const bytes_view cipher_root =
        is_256_bit and from.full_session_key.size() > first.size ? from.full_session_key : first.view();

    session_keys keys{.signing = {},
                      .client_to_server = cipher_key(from.cipher),
                      .server_to_client = cipher_key(from.cipher),
                      .application = {}};
    derive_key(first.view(), purposes.signing, keys.signing.mutable_view());
    derive_key(cipher_root, purposes.client_to_server, keys.client_to_server.mutable_view());
    derive_key(cipher_root, purposes.server_to_client, keys.server_to_client.mutable_view());
    derive_key(first.view(), purposes.application, keys.application.mutable_view());
    return keys;
}

}  // namespace sluice::smb::auth
