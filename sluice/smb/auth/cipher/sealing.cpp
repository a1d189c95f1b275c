#include "sluice/smb/auth/cipher/sealing.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/auth/secret.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::auth {
namespace {

constexpr std::size_t tag_bytes = 16;

// Returns the associated data of a message: the authenticated part of its transform header, which
// is complete.
bytes_view associated_part(bytes_view header) noexcept {
    return *header.from(wire::transform_associated_offset);
}

constexpr bool is_ccm(cipher_algorithm algorithm) noexcept {
    return algorithm == cipher_algorithm::aes_128_ccm or algorithm == cipher_algorithm::aes_256_ccm;
}

constexpr std::size_t nonce_bytes(cipher_algorithm algorithm) noexcept {
    return is_ccm(algorithm) ? 11 : 12;
}

result<detail::message_cipher> start(const cipher_key& key, detail::cipher_direction direction) noexcept {
    detail::message_cipher made;
    if (not is_ccm(key.algorithm())) {
        auto keyed = detail::gcm::create(key.view(), direction);
        if (!keyed) return failure(keyed.error());
        made.by_gcm = std::move(*keyed);
        return made;
    }
    const bool is_128 = key.algorithm() == cipher_algorithm::aes_128_ccm;
    auto started = detail::start_cipher({.name = is_128 ? "AES-128-CCM" : "AES-256-CCM",
                                         .direction = direction,
                                         .nonce_bytes = static_cast<int>(nonce_bytes(key.algorithm())),
                                         .tag_bytes = static_cast<int>(tag_bytes)},
                                        key.view());
    if (!started) return failure(started.error());
    made.by_ccm = std::move(*started);
    return made;
}

std::uint64_t total_bytes(std::span<const bytes_view> parts) noexcept {
    std::uint64_t total = 0;
    for (const bytes_view part : parts)
        total += part.size();  // the parts are in memory, so the sum does not overflow
    return total;
}

// Returns the contiguous bytes of the parts: a single part itself, or all of them copied into
// `room`.
bytes_view in_one_piece(std::span<const bytes_view> parts, mutable_bytes room) noexcept {
    if (parts.size() == 1) return parts.front();
    std::byte* at = room.data();
    for (const bytes_view part : parts) {
        if (!part.empty() and part.data() != at) std::memmove(at, part.data(), part.size());
        at += part.size();
    }
    return room;
}

// Passes nonce, header and message through the cipher into `out`. Returns false if CCM detects that
// the message is not authentic.
bool pass_ccm(const detail::cipher_context& cipher, bytes_view associated, std::span<const bytes_view> parts,
              mutable_bytes out) noexcept {
    detail::restart_cipher(cipher, *associated.first(nonce_bytes(cipher_algorithm::aes_128_ccm)));
    int length = 0;  // CCM authenticates the length first
    ENSURE(EVP_CipherUpdate(cipher.get(), nullptr, &length, nullptr, static_cast<int>(out.size())) == 1);
    ENSURE(detail::update_cipher(cipher, associated, nullptr));
    return detail::update_cipher(cipher, in_one_piece(parts, out), out.data());
}

void pass_gcm(detail::gcm& cipher, bytes_view associated, std::span<const bytes_view> parts,
              mutable_bytes out) noexcept {
    cipher.start(*associated.first(nonce_bytes(cipher_algorithm::aes_128_gcm)));
    cipher.authenticate(associated);
    std::byte* at = out.data();
    for (const bytes_view part : parts) {
        cipher.pass(part, at);
        at += part.size();
    }
}

detail::gcm::tag_type seal_ccm(const detail::cipher_context& cipher, bytes_view associated,
                               std::span<const bytes_view> parts, mutable_bytes out) noexcept {
    ENSURE(pass_ccm(cipher, associated, parts, out));
    unsigned char nothing_left[tag_bytes];
    int none = 0;
    detail::gcm::tag_type tag;
    ENSURE(EVP_CipherFinal_ex(cipher.get(), nothing_left, &none) == 1);
    ENSURE(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag_bytes),
                               tag.data()) == 1);
    return tag;
}

// CCM has compared the tag during decryption, so there is no final check.
bool open_ccm(const detail::cipher_context& cipher, bytes_view associated, std::span<const bytes_view> parts,
              mutable_bytes out, detail::gcm::tag_type claimed) noexcept {
    ENSURE(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag_bytes),
                               claimed.data()) == 1);
    return pass_ccm(cipher, associated, parts, out);
}

}  // namespace

result<void> sealer::seal(std::uint64_t session_id, std::span<const bytes_view> parts,
                          mutable_bytes sealed) noexcept {
    const std::uint64_t message_bytes = total_bytes(parts);
    if (message_bytes > limits::sealed_message_bytes_max) {
        return failure(error(std::errc::message_size, "seal a message"));
    }
    ENSURE(message_bytes != 0 and sealed.size() >= wire::transform_header_bytes and
           sealed.size() - wire::transform_header_bytes == message_bytes);
    const auto nonce = nonces_.next();
    if (!nonce)
        return failure(error(std::errc::value_too_large, "seal a message with a key without unused nonces"));
    detail::report_nonce(fingerprint_, *bytes_view(bytes_of(*nonce)).first(nonce_bytes(algorithm_)));

    const mutable_bytes header = *sealed.first(wire::transform_header_bytes);
    byte_writer writer(header);
    encode(writer, wire::transform_header{.nonce = std::bit_cast<std::array<std::byte, 16>>(*nonce),
                                          .message_bytes = static_cast<std::uint32_t>(message_bytes),
                                          .session_id = session_id});
    const bytes_view associated = associated_part(header);  // begins with the nonce
    const mutable_bytes out = *sealed.from(wire::transform_header_bytes);
    detail::gcm::tag_type tag;
    if (is_ccm(algorithm_)) {
        tag = seal_ccm(cipher_.by_ccm, associated, parts, out);
    } else {
        pass_gcm(cipher_.by_gcm, associated, parts, out);
        tag = cipher_.by_gcm.tag();
    }
    std::ranges::copy(tag, header.begin() + wire::transform_signature_offset);
    return {};
}

result<opener> opener::create(const cipher_key& key) noexcept {
    auto started = start(key, detail::cipher_direction::decrypt);
    if (!started) return failure(started.error());
    return opener(std::move(*started), key.algorithm());
}

bool opener::open(bytes_view header, std::span<const bytes_view> parts, mutable_bytes message) noexcept {
    ENSURE(total_bytes(parts) == message.size());
    const auto claimed = wire::decode_transform_header(header);
    const bool is_plausible = claimed and header.size() == wire::transform_header_bytes and
                              !message.empty() and message.size() <= limits::sealed_message_bytes_max and
                              claimed->message_bytes == message.size();
    if (is_plausible) {
        const bytes_view associated = associated_part(header);
        if (is_ccm(algorithm_)) {
            if (open_ccm(cipher_.by_ccm, associated, parts, message, claimed->signature)) return true;
        } else {
            pass_gcm(cipher_.by_gcm, associated, parts, message);
            if (cipher_.by_gcm.has_tag(claimed->signature)) return true;
        }
    }
    wipe(message);
    return false;
}

result<sealer> sealing_key::make_sealer(secret_random_source& random) noexcept {
    // relaxed: only the number matters. It is compared before the increment, so that it cannot
    // overflow.
    std::uint32_t lane = lanes_used_.load(std::memory_order_relaxed);
    do {
        if (lane == limits::sealers_per_key_max) {
            return failure(error(std::errc::value_too_large, "make another sealer of a key"));
        }
    } while (!lanes_used_.compare_exchange_weak(lane, lane + 1, std::memory_order_relaxed));
    auto started = start(key_, detail::cipher_direction::encrypt);
    if (!started) return failure(started.error());
    return sealer(std::move(*started), key_, nonce_sequence({.lane = lane, .start = random.next_u64()}));
}

}  // namespace sluice::smb::auth
