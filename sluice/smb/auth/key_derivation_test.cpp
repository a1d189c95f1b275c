#include "sluice/smb/auth/key_derivation.hpp"

#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <cstring>

#include "sluice/smb/auth/captured_exchange_testing.hpp"
#include "sluice/smb/auth/hex_testing.hpp"

namespace sluice::smb::auth {
namespace {

// Derives a key with OpenSSL's independent implementation, for comparison.
std::vector<std::byte> derived_by_openssl(bytes_view key, bytes_view label, bytes_view context,
                                          std::size_t bytes) {
    const auto chars = [](bytes_view part) {
        return const_cast<char*>(reinterpret_cast<const char*>(part.data()));
    };
    char counter_mode[] = "counter";
    char mac[] = "HMAC";
    char digest[] = "SHA256";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_MODE, counter_mode, 0),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_MAC, mac, 0),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, chars(key), key.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, chars(label), label.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, chars(context), context.size()),
        OSSL_PARAM_construct_end()};
    EVP_KDF* const algorithm = EVP_KDF_fetch(nullptr, "KBKDF", nullptr);
    EVP_KDF_CTX* const kdf = EVP_KDF_CTX_new(algorithm);
    std::vector<std::byte> derived(bytes);
    ENSURE(EVP_KDF_derive(kdf, reinterpret_cast<unsigned char*>(derived.data()), bytes, parameters) == 1);
    EVP_KDF_CTX_free(kdf);
    EVP_KDF_free(algorithm);
    return derived;
}

TEST(derive_key, agrees_with_openssl_for_keys_of_every_length) {
    for (const std::size_t key_bytes : {1, 16, 32, 64, 65, 200}) {
        for (const std::size_t derived_bytes : {1, 16, 31, 32, 33, 100}) {
            const std::vector<std::byte> key(key_bytes, std::byte{0x5a});
            const auto context = from_hex("00112233");
            std::vector<std::byte> derived(derived_bytes);
            derive_key(key, {.label = as_bytes("label"), .context = context}, derived);
            EXPECT_EQ(derived, derived_by_openssl(key, as_bytes("label"), context, derived_bytes))
                << key_bytes << " to " << derived_bytes;
        }
    }
}

TEST(derive_session_keys, derives_the_keys_that_microsoft_published_for_smb_3_0) {
    const auto root = from_hex("7CD451825D0450D235424E44BA6E78CC");
    const auto keys = derive_session_keys({.full_session_key = root, .preauth_hash = {}});
    EXPECT_EQ(to_hex(keys.signing.view()), "0b7e9c5cac36c0f6ea9ab275298cedce");
    EXPECT_EQ(to_hex(keys.client_to_server.view()), "fad27796665b313ebb578f388632b4f7");
    EXPECT_EQ(to_hex(keys.server_to_client.view()), "b0f0427f7ceb416d1d9dcc0cd4f99447");
    EXPECT_EQ(to_hex(keys.application.view()), "bb23a4575aa26c721af525af15a87b4f");

    const auto second_channel = from_hex("4E01A2B313BCF660CC250BEF021AEDE6");
    EXPECT_EQ(
        to_hex(derive_session_keys({.full_session_key = second_channel, .preauth_hash = {}}).signing.view()),
        "ba1a17dbbfec349bca105563d598952f");
}

TEST(derive_session_keys, derives_the_keys_that_microsoft_published_for_smb_3_1_1) {
    const auto root = from_hex(captured::exported_session_key);
    const auto keys =
        derive_session_keys({.full_session_key = root,
                             .cipher = cipher_algorithm::aes_128_gcm,
                             .preauth_hash = array_from_hex<64>(captured::preauth_hash_of_session)});
    EXPECT_EQ(to_hex(keys.signing.view()), captured::signing_key);
    EXPECT_EQ(to_hex(keys.client_to_server.view()), "629bcbc54422a0f572b97f45989b6073");
    EXPECT_EQ(to_hex(keys.server_to_client.view()), "e2af0dcefac68da71a0dfbd0d1350d74");
    EXPECT_EQ(to_hex(keys.application.view()), "6d7ad7954e9ec61e907b4d473dc178ff");
}

TEST(derive_session_keys, derives_256_bit_keys_from_the_complete_session_key_and_signs_with_128) {
    const auto root = from_hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    const preauth_integrity::value_type hash{std::byte{7}};
    const bytes_view first = *bytes_view(root).first(16);
    const auto keys = derive_session_keys(
        {.full_session_key = root, .cipher = cipher_algorithm::aes_256_gcm, .preauth_hash = hash});
    const auto label = [](const char* text) {
        return bytes_view(as_bytes(std::string_view(text, std::strlen(text) + 1)));
    };
    const auto hex_by_openssl = [&](bytes_view key, const char* text, std::size_t bytes) {
        return to_hex(derived_by_openssl(key, label(text), hash, bytes));
    };
    EXPECT_EQ(to_hex(keys.client_to_server.view()), hex_by_openssl(root, "SMBC2SCipherKey", 32));
    EXPECT_EQ(to_hex(keys.server_to_client.view()), hex_by_openssl(root, "SMBS2CCipherKey", 32));
    EXPECT_EQ(to_hex(keys.signing.view()), hex_by_openssl(first, "SMBSigningKey", 16));
    EXPECT_EQ(to_hex(keys.application.view()), hex_by_openssl(first, "SMBAppKey", 16));
}

TEST(derive_session_keys, pads_a_short_session_key_with_zeros) {
    const auto short_key = from_hex("0102030405060708");
    const auto padded = from_hex("01020304050607080000000000000000");
    const auto a = derive_session_keys({.full_session_key = short_key, .preauth_hash = {}});
    const auto b = derive_session_keys({.full_session_key = padded, .preauth_hash = {}});
    EXPECT_EQ(to_hex(a.signing.view()), to_hex(b.signing.view()));
    EXPECT_EQ(to_hex(a.client_to_server.view()), to_hex(b.client_to_server.view()));
}

}  // namespace
}  // namespace sluice::smb::auth
