#include "sluice/smb/auth/cipher/signing.hpp"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include "sluice/base/random.hpp"
#include "sluice/smb/auth/captured_exchange_testing.hpp"
#include "sluice/smb/auth/hex_testing.hpp"

namespace sluice::smb::auth {
namespace {

constexpr signing_algorithm all_algorithms[] = {signing_algorithm::hmac_sha256, signing_algorithm::aes_cmac,
                                                signing_algorithm::aes_gmac};

signer make_signer(signing_algorithm algorithm, std::string_view key) {
    return signer::create(algorithm, secret_bytes<16>(array_from_hex<16>(key))).value();
}

std::string hex_of_signature(signer& with, bytes_view message, const signed_message& which = {}) {
    return to_hex(with.sign(std::span(&message, 1), which).value());
}

TEST(signer, computes_the_cmacs_of_rfc_4493) {
    auto cmac = make_signer(signing_algorithm::aes_cmac, "2b7e151628aed2a6abf7158809cf4f3c");
    const auto message = from_hex(
        "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51"
        "30c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710");
    const bytes_view all = message;
    EXPECT_EQ(hex_of_signature(cmac, *all.first(0)), "bb1d6929e95937287fa37d129b756746");
    EXPECT_EQ(hex_of_signature(cmac, *all.first(16)), "070a16b46b4d4144f79bdd9dd04a287c");
    EXPECT_EQ(hex_of_signature(cmac, *all.first(40)), "dfa66747de9ae63030ca32611497c827");
    EXPECT_EQ(hex_of_signature(cmac, *all.first(64)), "51f0bebf7e3b9d92fc49741779363cfe");
}

TEST(signer, computes_the_tag_of_the_first_test_case_of_gcm) {
    auto gmac = make_signer(signing_algorithm::aes_gmac, "00000000000000000000000000000000");
    EXPECT_EQ(hex_of_signature(gmac, {}), "58e2fccefa7e3061367f1d57a4e7455a");
}

TEST(signer, truncates_hmac_sha256_to_its_first_half) {
    auto with = make_signer(signing_algorithm::hmac_sha256, "4a656665000000000000000000000000");
    // A short key is padded with zeros, so this is the second case of RFC 4231.
    EXPECT_EQ(hex_of_signature(with, as_bytes("what do ya want for nothing?")),
              "5bdcc146bf60754e6a042426089575c7");
}

TEST(signer, verifies_a_session_setup_response_of_windows) {
    auto cmac = make_signer(signing_algorithm::aes_cmac, captured::signing_key);
    const auto message = from_hex(captured::second_setup_response);
    const auto claimed = array_from_hex<16>("EBE146DA120BA25FC3376A49DFE31BC1");
    EXPECT_TRUE(cmac.verify(with_zero_signature(message), {.message_id = 3}, claimed));
    EXPECT_FALSE(cmac.verify(std::array{bytes_view(message)}, {.message_id = 3}, claimed));
}

// The nonce is written manually according to [MS-SMB2] 3.1.4.1, the tag comes from OpenSSL.
TEST(signer, forms_the_gmac_nonce_from_message_id_sender_and_cancel) {
    // One for each side, because a signer sends for one side only.
    const auto signed_as = [](bytes_view text, const signed_message& which) {
        auto gmac = make_signer(signing_algorithm::aes_gmac, "000102030405060708090a0b0c0d0e0f");
        return hex_of_signature(gmac, text, which);
    };
    const auto message = from_hex("fe534d42000102");
    const auto tag_with_nonce = [&](std::string_view nonce_hex) {
        const auto key = from_hex("000102030405060708090a0b0c0d0e0f");
        const auto nonce = from_hex(nonce_hex);
        const auto chars = [](const std::vector<std::byte>& bytes) {
            return reinterpret_cast<const unsigned char*>(bytes.data());
        };
        EVP_CIPHER_CTX* const gcm = EVP_CIPHER_CTX_new();
        int length = 0;
        std::array<std::byte, 16> tag;
        unsigned char none[16];
        ENSURE(EVP_EncryptInit_ex(gcm, EVP_aes_128_gcm(), nullptr, chars(key), chars(nonce)) == 1);
        ENSURE(EVP_EncryptUpdate(gcm, nullptr, &length, chars(message), static_cast<int>(message.size())) ==
               1);
        ENSURE(EVP_EncryptFinal_ex(gcm, none, &length) == 1);
        ENSURE(EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_GCM_GET_TAG, 16, tag.data()) == 1);
        EVP_CIPHER_CTX_free(gcm);
        return to_hex(tag);
    };
    const std::uint64_t id = 0x0807060504030201;
    EXPECT_EQ(signed_as(message, {.message_id = id, .sender = message_sender::client}),
              tag_with_nonce("010203040506070800000000"));
    EXPECT_EQ(signed_as(message, {.message_id = id, .sender = message_sender::server}),
              tag_with_nonce("010203040506070801000000"));
    EXPECT_EQ(signed_as(message, {.message_id = id, .sender = message_sender::client, .is_cancel = true}),
              tag_with_nonce("010203040506070802000000"));
}

TEST(signer, signs_the_same_for_every_division_into_parts) {
    seeded_random random(1);
    std::vector<std::byte> message(10'000);
    random.fill(message);
    for (const signing_algorithm algorithm : all_algorithms) {
        auto with = make_signer(algorithm, "000102030405060708090a0b0c0d0e0f");
        for (std::uint64_t id = 0; id != 200; ++id) {
            const bytes_view whole = *bytes_view(message).first(random.below(message.size() + 1));
            const auto expected = with.sign(std::span(&whole, 1), {.message_id = id}).value();
            std::vector<bytes_view> parts;
            for (bytes_view rest = whole; !rest.empty();) {
                const std::uint64_t cut =
                    random.below(2) == 0 ? random.below(40) : random.below(rest.size() + 1);
                const bytes_view part = rest.first(cut).value_or(rest);
                parts.push_back(part);
                rest = *rest.from(part.size());
            }
            ASSERT_TRUE(with.verify(parts, {.message_id = id}, expected)) << whole.size();
        }
    }
}

TEST(signer, rejects_a_message_or_a_signature_with_any_bit_flipped) {
    for (const signing_algorithm algorithm : all_algorithms) {
        auto with = make_signer(algorithm, "000102030405060708090a0b0c0d0e0f");
        std::vector<std::byte> message(77, std::byte{0x42});
        const std::array<bytes_view, 1> parts = {message};
        const signed_message which = {.message_id = 9, .sender = message_sender::server};
        auto signature = with.sign(parts, which).value();
        ASSERT_TRUE(with.verify(parts, which, signature));
        for (std::size_t bit = 0; bit < 8 * signature.size(); ++bit) {
            const auto flip = static_cast<std::byte>(1U << bit % 8);
            signature[bit / 8] ^= flip;
            EXPECT_FALSE(with.verify(parts, which, signature)) << bit;
            signature[bit / 8] ^= flip;
        }
        for (std::size_t bit = 0; bit < 8 * message.size(); ++bit) {
            const auto flip = static_cast<std::byte>(1U << bit % 8);
            message[bit / 8] ^= flip;
            EXPECT_FALSE(with.verify(parts, which, signature)) << bit;
            message[bit / 8] ^= flip;
        }
        EXPECT_TRUE(with.verify(parts, which, signature));
    }
}

TEST(signer_death, a_message_shorter_than_a_header_has_no_signature_field) {
    EXPECT_DEATH((void)with_zero_signature(std::vector<std::byte>(63)), "header_bytes");
}

}  // namespace
}  // namespace sluice::smb::auth
