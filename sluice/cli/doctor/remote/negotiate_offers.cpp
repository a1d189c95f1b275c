// The offers that a server receives, and the names of what they contain.

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "sluice/cli/doctor/remote/negotiation.hpp"

namespace sluice::cli::doctor {

using smb::client::negotiate_offer;
using smb::client::probed_protocol;
using smb::wire::cipher;
using smb::wire::compression_algorithm;
using smb::wire::dialect;
using smb::wire::signing_algorithm;

namespace {

constexpr std::array dialects{dialect::smb_2_0_2, dialect::smb_2_1, dialect::smb_3_0, dialect::smb_3_0_2,
                              dialect::smb_3_1_1};
constexpr std::array ciphers{cipher::aes_128_gcm, cipher::aes_256_gcm, cipher::aes_128_ccm,
                             cipher::aes_256_ccm};
constexpr std::array signings{signing_algorithm::aes_gmac, signing_algorithm::aes_cmac,
                              signing_algorithm::hmac_sha256};
constexpr std::array compressions{compression_algorithm::lz77, compression_algorithm::lz77_huffman,
                                  compression_algorithm::lznt1, compression_algorithm::pattern_v1,
                                  compression_algorithm::lz4};
constexpr std::chrono::seconds first_within{4};
constexpr std::chrono::seconds next_within{2};

[[nodiscard]] negotiate_offer everything() {
    return {.dialects = {dialects.begin(), dialects.end()},
            .ciphers = {ciphers.begin(), ciphers.end()},
            .signings = {signings.begin(), signings.end()},
            .compressions = {compressions.begin(), compressions.end()}};
}

// Sends offers to one server, until one is not answered.
class offers {
public:
    offers(const io::socket_address& address, random_source& random,
           std::chrono::steady_clock::time_point until) noexcept
        : address_(address), random_(random), until_(until) {}

    [[nodiscard]] probe_outcome ask(std::span<const std::byte> request, std::chrono::seconds within) const {
        return exchange_with(address_, request, std::min(until_, std::chrono::steady_clock::now() + within));
    }
    // Returns the reply if the server accepted the offer.
    [[nodiscard]] const smb::client::negotiate_facts* accepted(const negotiate_offer& offer) {
        if (has_failed_) return nullptr;
        last_ = ask(smb::client::negotiate_probe_request(offer, random_), next_within);
        const bool is_refusal_by_close = last_.how == reaction::closed and last_.received_bytes == 0;
        has_failed_ = last_.how != reaction::answered and not is_refusal_by_close;
        const bool is_reply =
            last_.how == reaction::answered and last_.answer.protocol == probed_protocol::smb2;
        return is_reply ? &last_.answer.reply : nullptr;
    }
    [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

private:
    const io::socket_address& address_;
    random_source& random_;
    std::chrono::steady_clock::time_point until_;
    probe_outcome last_{};
    bool has_failed_ = false;
};

template <class Code>
[[nodiscard]] std::string number_of(Code code) {
    return fmt::format("unknown (0x{:04x})", static_cast<std::uint16_t>(code));
}

}  // namespace

negotiation negotiate_with(const io::socket_address& address, random_source& random,
                           std::chrono::steady_clock::time_point until) {
    offers to(address, random, until);
    negotiation seen;
    seen.first = to.ask(smb::client::negotiate_probe_request(everything(), random), first_within);
    const bool is_closed = seen.first.how == reaction::closed;
    const bool may_be_smb1 = is_closed or (seen.first.how == reaction::answered and
                                           seen.first.answer.protocol != probed_protocol::http and
                                           seen.first.answer.protocol != probed_protocol::tls and
                                           seen.first.answer.protocol != probed_protocol::ssh);
    if (may_be_smb1) seen.smb1 = to.ask(smb::client::smb1_probe_request(), next_within);
    if (not seen.is_smb2()) return seen;
    for (const dialect each : dialects) {
        const auto* const reply =
            to.accepted({.dialects = {each}, .ciphers = {}, .signings = {}, .compressions = {}});
        if (reply != nullptr and reply->dialect == each) seen.dialects.push_back(each);
    }
    if (seen.first.answer.reply.dialect == dialect::smb_3_1_1) {
        for (const cipher each : ciphers) {
            const auto* const reply = to.accepted(
                {.dialects = {dialect::smb_3_1_1}, .ciphers = {each}, .signings = {}, .compressions = {}});
            if (reply != nullptr and reply->cipher == each) seen.ciphers.push_back(each);
        }
        for (const signing_algorithm each : signings) {
            const auto* const reply = to.accepted(
                {.dialects = {dialect::smb_3_1_1}, .ciphers = {}, .signings = {each}, .compressions = {}});
            if (reply != nullptr and reply->signing == each) seen.signings.push_back(each);
        }
    }
    seen.is_complete = not to.has_failed();
    return seen;
}

std::string name_of_dialect(dialect code) {
    switch (code) {
        case dialect::smb_2_0_2:
            return "2.0.2";
        case dialect::smb_2_1:
            return "2.1";
        case dialect::smb_3_0:
            return "3.0";
        case dialect::smb_3_0_2:
            return "3.0.2";
        case dialect::smb_3_1_1:
            return "3.1.1";
        case dialect::smb_2_wildcard:
            break;
    }
    return number_of(code);
}

std::string name_of_cipher(cipher code) {
    switch (code) {
        case cipher::none:
            return "none";
        case cipher::aes_128_ccm:
            return "AES-128-CCM";
        case cipher::aes_128_gcm:
            return "AES-128-GCM";
        case cipher::aes_256_ccm:
            return "AES-256-CCM";
        case cipher::aes_256_gcm:
            return "AES-256-GCM";
    }
    return number_of(code);
}

std::string name_of_signing(signing_algorithm code) {
    switch (code) {
        case signing_algorithm::hmac_sha256:
            return "HMAC-SHA256";
        case signing_algorithm::aes_cmac:
            return "AES-128-CMAC";
        case signing_algorithm::aes_gmac:
            return "AES-128-GMAC";
    }
    return number_of(code);
}

std::string name_of_compression(compression_algorithm code) {
    switch (code) {
        case compression_algorithm::none:
            return "none";
        case compression_algorithm::lznt1:
            return "LZNT1";
        case compression_algorithm::lz77:
            return "LZ77";
        case compression_algorithm::lz77_huffman:
            return "LZ77+Huffman";
        case compression_algorithm::pattern_v1:
            return "Pattern_V1";
        case compression_algorithm::lz4:
            return "LZ4";
    }
    return number_of(code);
}

}  // namespace sluice::cli::doctor
