// NEGOTIATE, [MS-SMB2] 3.2.4.2.2 and 3.2.5.2.

#include <algorithm>

#include "sluice/smb/client/connection.hpp"

namespace sluice::smb::client {

using wire::dialect;

namespace {

constexpr const char* step = "negotiate";
constexpr std::size_t salt_bytes = 32;

// The offered ciphers and algorithms, in order of preference. 128-bit GCM is the fastest secure
// one.
constexpr std::array dialects{dialect::smb_2_0_2, dialect::smb_2_1, dialect::smb_3_0, dialect::smb_3_0_2,
                              dialect::smb_3_1_1};  // in the order of [MS-SMB2]
constexpr std::array<le16, 4> ciphers{le16(2), le16(4), le16(1), le16(3)};
constexpr std::array<le16, 3> signings{le16(2), le16(1), le16(0)};

// The fastest algorithm first: a server compresses with the first one that it supports.
constexpr std::array<le16, 4> compressions{le16(2), le16(3), le16(1), le16(4)};
[[nodiscard]] wire::compression_capabilities offered_compression() noexcept {
    return {.flags = wire::compression_chained,
            .algorithms = wire::code_list<wire::compression_algorithm>(std::span(compressions))};
}

[[nodiscard]] std::span<const le16> signings_for(const connection_options& how) noexcept {
    return std::span<const le16>(signings).subspan(how.offers_gmac ? 0 : 1);
}

[[nodiscard]] bool is_128_or_256(auth::cipher_algorithm cipher) noexcept {
    return cipher >= auth::cipher_algorithm::aes_128_ccm and cipher <= auth::cipher_algorithm::aes_256_gcm;
}

}  // namespace

io::task<outcome<void>> connection::negotiate() noexcept {
    std::array<le16, dialects.size()> offered;
    std::size_t count = 0;
    for (const dialect each : dialects) {
        if (each < options_.dialect_min or each > options_.dialect_max) continue;
        agreed_.offered_dialects.push_back(each);
        offered[count++] = le16(static_cast<std::uint16_t>(each));
    }
    if (count == 0) co_return failed(client_error::of_policy(step, "the range of dialects is empty"));
    const bool offers_3 = options_.dialect_max >= dialect::smb_3_0;
    agreed_.client_guid = options_.client_guid;
    if (agreed_.client_guid == wire::guid{}) deps_.random.fill(agreed_.client_guid.bytes);
    options_.client_guid = agreed_.client_guid;
    agreed_.offered_capabilities = wire::capabilities::large_mtu;
    if (offers_3)
        agreed_.offered_capabilities |= wire::capabilities::encryption | wire::capabilities::multi_channel |
                                        wire::capabilities::notifications;
    agreed_.offered_security_mode =
        options_.signs ? wire::security_mode::signing_enabled | wire::security_mode::signing_required
                       : wire::security_mode::signing_enabled;

    std::array<std::byte, salt_bytes> salt;
    deps_.random.fill(salt);
    const le16 sha_512(static_cast<std::uint16_t>(wire::hash_algorithm::sha_512));
    wire::negotiate_args hello{
        .security_mode = agreed_.offered_security_mode,
        .capabilities = agreed_.offered_capabilities,
        .client_guid = agreed_.client_guid,
        .dialects = wire::code_list<dialect>(std::span(offered).first(count)),
    };
    if (options_.dialect_max >= dialect::smb_3_1_1) {
        hello.contexts.preauth = wire::preauth_integrity{
            .hashes = wire::code_list<wire::hash_algorithm>(std::span(&sha_512, 1)), .salt = salt};
        hello.contexts.ciphers = wire::code_list<wire::cipher>(std::span(ciphers));
        hello.contexts.signing = wire::code_list<wire::signing_algorithm>(signings_for(options_));
        if (options_.compresses) hello.contexts.compression = offered_compression();
    }
    auth::preauth_integrity hash;
    hash_next_request(hash);
    io::task<outcome<reply>> asking =
        call(wire::command::negotiate, hello, {.step = step, .room_bytes = 512});
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto message = wire::message_view::of(answered->message);
    const auto said = wire::decode_negotiate_reply(*message);
    if (not said) co_return failed(client_error::of_protocol(step, "invalid NEGOTIATE reply"));
    hash.add(answered->message);
    agreed_.preauth = hash;
    co_return apply_negotiate_reply(*said);
}

outcome<void> connection::apply_negotiate_reply(const wire::negotiate_reply& said) noexcept {
    const bool was_offered =
        std::ranges::find(agreed_.offered_dialects, said.dialect) != agreed_.offered_dialects.end();
    if (not was_offered)
        return failed(client_error::of_protocol(step, "the server chose a dialect that was not offered"));
    const std::uint32_t least =
        std::min({said.transact_bytes_max, said.read_bytes_max, said.write_bytes_max});
    if (least < 4096)
        return failed(client_error::of_protocol(step, "the server limits requests to less than 4 KiB"));
    agreed_.dialect = said.dialect;
    agreed_.capabilities = agreed_.server_capabilities = said.capabilities;
    agreed_.security_mode = said.security_mode;
    agreed_.server_guid = said.server_guid;
    agreed_.security_offer.assign(said.security_blob.begin(), said.security_blob.end());
    const bool is_large = agreed_.has_large_mtu() and said.dialect >= dialect::smb_2_1;
    if (not is_large)
        agreed_.capabilities = wire::without(agreed_.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bound = is_large ? limits::transfer_bytes_max : 65536U;
    agreed_.transact_bytes_max = std::min(said.transact_bytes_max, bound);
    agreed_.read_bytes_max = std::min(said.read_bytes_max, bound);
    agreed_.write_bytes_max = std::min(said.write_bytes_max, bound);
    if (said.dialect >= dialect::smb_3_0) agreed_.signing = auth::signing_algorithm::aes_cmac;
    const bool is_3_0 = said.dialect == dialect::smb_3_0 or said.dialect == dialect::smb_3_0_2;
    if (is_3_0 and wire::has(said.capabilities, wire::capabilities::encryption))
        agreed_.cipher = auth::cipher_algorithm::aes_128_ccm;
    if (said.dialect >= dialect::smb_3_1_1) {
        if (const auto settled = apply_negotiate_contexts(said.contexts); not settled) return settled;
    }
    if (options_.encryption == encryption::required and not agreed_.cipher)
        return failed(client_error::of_policy(step,
                                              "encryption is required, but there is none in common with the "
                                              "server; offer dialect 3.0 or later"));
    return {};
}

outcome<void> connection::apply_negotiate_contexts(const wire::negotiate_contexts& said) noexcept {
    const bool has_hash = said.preauth and said.preauth->hashes.size() == 1 and
                          said.preauth->hashes[0] == wire::hash_algorithm::sha_512;
    if (not has_hash) return failed(client_error::of_protocol(step, "the server chose no SHA-512 for 3.1.1"));
    if (said.ciphers and said.ciphers->size() == 1 and (*said.ciphers)[0] != wire::cipher::none) {
        const auto chosen = static_cast<auth::cipher_algorithm>((*said.ciphers)[0]);
        if (not is_128_or_256(chosen))
            return failed(client_error::of_protocol(step, "the server chose a cipher that was not offered"));
        agreed_.cipher = chosen;
    }
    if (said.signing and said.signing->size() == 1) {
        const auto chosen = static_cast<auth::signing_algorithm>((*said.signing)[0]);
        const auto offered = signings_for(options_);
        if (std::ranges::find(offered, static_cast<std::uint16_t>(chosen), &le16::value) == offered.end())
            return failed(
                client_error::of_protocol(step, "the server chose a signing algorithm that was not offered"));
        agreed_.signing = chosen;
    }
    if (options_.compresses and said.compression) {
        agreed_.compression = wire::negotiated_compression::choose(*said.compression);
        const bool is_none = said.compression->algorithms.size() == 1 and
                             said.compression->algorithms[0] == wire::compression_algorithm::none;
        if (not is_none and agreed_.compression.capabilities() != *said.compression)
            return failed(
                client_error::of_protocol(step, "the server chose a compression that was not offered"));
    }
    return {};
}

}  // namespace sluice::smb::client
