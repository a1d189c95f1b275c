#include "sluice/smb/auth/cipher/signing.hpp"

#include <utility>

#include "sluice/base/endian.hpp"

namespace sluice::smb::auth {
namespace {

using block = std::array<std::byte, 16>;

constexpr std::size_t header_bytes = 64;
constexpr std::size_t signature_offset = 48;  // in the SMB2 header, at its end

// The 12-byte nonce of aes_gmac, [MS-SMB2] 3.1.4.1.
struct gmac_nonce {
    le64 message_id;  //  0
    le32 flags;       //  8
};
static_assert(sizeof(gmac_nonce) == 12 and alignof(gmac_nonce) == 1);
static_assert(offsetof(gmac_nonce, flags) == 8);
static_assert(std::is_trivially_copyable_v<gmac_nonce>);
constexpr std::uint32_t from_server = 1;
constexpr std::uint32_t of_cancel = 2;

[[nodiscard]] gmac_nonce nonce_of(const signed_message& which) noexcept {
    const std::uint32_t flags =
        (which.sender == message_sender::server ? from_server : 0) | (which.is_cancel ? of_cancel : 0);
    return {.message_id = le64(which.message_id), .flags = le32(flags)};
}

void xor_into(block& target, bytes_view other) noexcept {
    for (std::size_t i = 0; i < target.size(); ++i)
        target[i] ^= other[i];
}

// Multiplies by x in the field of RFC 4493, section 2.3, without a branch, because the input is
// secret.
void double_in_field(bytes_view from, mutable_bytes to) noexcept {
    unsigned carry = 0;
    for (std::size_t i = from.size(); i-- != 0;) {
        const unsigned shifted = std::to_integer<unsigned>(from[i]) << 1 | carry;
        to[i] = static_cast<std::byte>(shifted & 0xff);
        carry = shifted >> 8;
    }
    to[to.size() - 1] ^= static_cast<std::byte>(0x87 * carry);
}

// The chain of CMAC: CBC of which only the last block of output is used. Consecutive blocks go
// through the cipher in one call, which is a third faster than OpenSSL 3.0's CMAC with a call per
// block. The last block is held back, because only the end of the message identifies it.
class cmac_chain {
public:
    explicit cmac_chain(const detail::cipher_context& cbc) noexcept : cbc_(cbc) {
        static constexpr block zero{};
        detail::restart_cipher(cbc_, zero);
    }

    void add(bytes_view part) noexcept {
        if (held_bytes_ != 0) {
            const std::size_t taken = std::min(part.size(), held_.size() - held_bytes_);
            std::copy_n(part.begin(), taken, held_.begin() + held_bytes_);
            held_bytes_ += taken;
            part = *part.from(taken);
        }
        if (part.empty()) return;
        if (held_bytes_ != 0) pass(held_);
        const std::size_t whole = (part.size() - 1) / held_.size() * held_.size();
        pass(*part.first(whole));
        held_bytes_ = part.size() - whole;
        std::copy_n(part.begin() + whole, held_bytes_, held_.begin());
    }

    [[nodiscard]] block finish(bytes_view whole_subkey, bytes_view padded_subkey) noexcept {
        if (held_bytes_ == held_.size()) {
            xor_into(held_, whole_subkey);
        } else {
            held_[held_bytes_] = std::byte{0x80};
            std::fill(held_.begin() + held_bytes_ + 1, held_.end(), std::byte{0});
            xor_into(held_, padded_subkey);
        }
        block last;
        ENSURE(detail::update_cipher(cbc_, held_, last.data()));
        return last;
    }

private:
    void pass(bytes_view blocks) noexcept {
        while (!blocks.empty()) {
            const bytes_view piece = *blocks.first(std::min(blocks.size(), unread_.size()));
            ENSURE(detail::update_cipher(cbc_, piece, unread_.data()));
            blocks = *blocks.from(piece.size());
        }
    }

    const detail::cipher_context& cbc_;
    block held_;
    std::size_t held_bytes_ = 0;
    std::array<std::byte, 4096> unread_;
};

}  // namespace

std::array<bytes_view, 3> with_zero_signature(bytes_view message) noexcept {
    static constexpr message_signature zero{};
    ENSURE(message.size() >= header_bytes);
    return {*message.first(signature_offset), bytes_view(zero), *message.from(header_bytes)};
}

result<signer> signer::create(signing_algorithm algorithm, const secret_bytes<16>& key,
                              used_message_ids allowed) noexcept {
    signer made(algorithm);
    if (algorithm == signing_algorithm::hmac_sha256) {
        made.hmac_.emplace(key.view());
        return made;
    }
    if (algorithm == signing_algorithm::aes_gmac) {
        auto keyed = detail::gcm::create(key.view(), detail::cipher_direction::encrypt);
        if (!keyed) return failure(keyed.error());
        made.gcm_ = std::move(*keyed);
        made.used_ = std::move(allowed);
        made.fingerprint_ = fingerprint_of(key.view(), static_cast<std::uint16_t>(algorithm));
        return made;
    }
    auto keyed = detail::start_cipher({.name = "AES-128-CBC"}, key.view());
    if (!keyed) return failure(keyed.error());
    made.cbc_ = std::move(*keyed);
    made.make_cmac_subkeys();
    return made;
}

void signer::make_cmac_subkeys() noexcept {
    static constexpr block zero{};
    secret_bytes<16> root;
    detail::restart_cipher(cbc_, zero);
    ENSURE(detail::update_cipher(cbc_, zero, root.mutable_view().data()));
    double_in_field(root.view(), whole_subkey_.mutable_view());
    double_in_field(whole_subkey_.view(), padded_subkey_.mutable_view());
}

// A signer sends for one side only, so the sender needs no separate set.
std::optional<signing_permit> signer::permit(const signed_message& which) noexcept {
    if (algorithm_ != signing_algorithm::aes_gmac) return signing_permit(which);
    using enum used_message_ids::claim_result;
    const auto claimed = which.is_cancel
                             ? cancelled_.claim(which.message_id, 1)
                             : used_.claim(which.message_id, std::max<std::uint16_t>(which.ids, 1));
    ENSURE(claimed != used, "AES-GMAC nonce requested twice");
    if (claimed != fresh) return std::nullopt;
    const gmac_nonce nonce = nonce_of(which);
    detail::report_nonce(fingerprint_, bytes_of(nonce));
    return signing_permit(which);
}

message_signature signer::sign(std::span<const bytes_view> parts, signing_permit once) noexcept {
    ENSURE(once.is_unused_, "signing permit used twice");
    return compute(parts, once.which_);
}

std::optional<message_signature> signer::sign(std::span<const bytes_view> parts,
                                              const signed_message& which) noexcept {
    std::optional<signing_permit> once = permit(which);
    if (not once) return std::nullopt;
    return sign(parts, *std::move(once));
}

message_signature signer::compute(std::span<const bytes_view> parts, const signed_message& which) noexcept {
    switch (algorithm_) {
        case signing_algorithm::hmac_sha256:
            return sign_hmac(parts);
        case signing_algorithm::aes_cmac:
            return sign_cmac(parts);
        case signing_algorithm::aes_gmac:
            return sign_gmac(parts, which);
    }
    std::unreachable();
}

bool signer::verify(std::span<const bytes_view> parts, const signed_message& which,
                    const message_signature& claimed) noexcept {
    return equal_in_constant_time(compute(parts, which), claimed);
}

message_signature signer::sign_hmac(std::span<const bytes_view> parts) noexcept {
    const secret_bytes<32> code = hmac_->code(parts);
    message_signature signature;
    std::copy_n(code.view().begin(), signature.size(), signature.begin());
    return signature;
}

message_signature signer::sign_cmac(std::span<const bytes_view> parts) noexcept {
    cmac_chain chain(cbc_);
    for (const bytes_view part : parts)
        chain.add(part);
    return chain.finish(whole_subkey_.view(), padded_subkey_.view());
}

message_signature signer::sign_gmac(std::span<const bytes_view> parts, const signed_message& which) noexcept {
    const gmac_nonce nonce = nonce_of(which);
    gcm_.start(bytes_of(nonce));
    for (const bytes_view part : parts)
        gcm_.authenticate(part);
    return gcm_.tag();
}

}  // namespace sluice::smb::auth
