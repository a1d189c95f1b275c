// The cost of signing and sealing an SMB message per byte. A message is a header of 80 bytes (like
// an SMB2 READ response) and the data, in two parts for ours. The limit is OpenSSL through EVP with
// a reused context, on the message in one piece: the base of our implementation, except for GCM and
// GMAC on CPUs with VAES (docs/decisions/0012-own-gcm.md).

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "sluice/smb/auth/cipher/sealing.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::bench {
namespace {

using namespace sluice::smb::auth;

constexpr std::size_t header_bytes = 80;

// A message in one piece, and in the parts that a server has.
struct message {
    explicit message(std::size_t data_bytes) : whole(header_bytes + data_bytes, std::byte{0x5a}) {}
    std::vector<std::byte> whole;
    std::array<bytes_view, 2> parts = {*bytes_view(whole).first(header_bytes),
                                       *bytes_view(whole).from(header_bytes)};
};

const unsigned char* chars(const std::vector<std::byte>& bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

unsigned char* chars(std::vector<std::byte>& bytes) {
    return reinterpret_cast<unsigned char*>(bytes.data());
}

constexpr unsigned char zero_key[32] = {};

template <class Work>
void measure(run& repeat, Work work) {
    repeat.measure([&] {
        for (auto left = repeat.operations(); left != 0; --left)
            work();
    });
}

// --- signing

void raw_mac(run& repeat, std::size_t size, const char* name, const char* parameter, const char* value) {
    const message sent(size);
    EVP_MAC* const algorithm = EVP_MAC_fetch(nullptr, name, nullptr);
    EVP_MAC_CTX* const mac = EVP_MAC_CTX_new(algorithm);
    const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(parameter, const_cast<char*>(value), 0),
                                     OSSL_PARAM_construct_end()};
    ENSURE(EVP_MAC_init(mac, zero_key, 16, parameters) == 1);
    std::array<unsigned char, 32> code;
    std::size_t code_bytes = 0;
    measure(repeat, [&] {
        ENSURE(EVP_MAC_init(mac, nullptr, 0, nullptr) == 1);
        ENSURE(EVP_MAC_update(mac, chars(sent.whole), sent.whole.size()) == 1);
        ENSURE(EVP_MAC_final(mac, code.data(), &code_bytes, code.size()) == 1);
    });
    EVP_MAC_CTX_free(mac);
    EVP_MAC_free(algorithm);
}

void raw_gmac(run& repeat, std::size_t size) {
    const message sent(size);
    EVP_CIPHER_CTX* const gcm = EVP_CIPHER_CTX_new();
    ENSURE(EVP_EncryptInit_ex(gcm, EVP_aes_128_gcm(), nullptr, zero_key, nullptr) == 1);
    std::array<unsigned char, 12> nonce{};
    std::array<unsigned char, 16> tag;
    int length = 0;
    measure(repeat, [&] {
        ++nonce[0];
        ENSURE(EVP_EncryptInit_ex(gcm, nullptr, nullptr, nullptr, nonce.data()) == 1);
        ENSURE(EVP_EncryptUpdate(gcm, nullptr, &length, chars(sent.whole),
                                 static_cast<int>(sent.whole.size())) == 1);
        ENSURE(EVP_EncryptFinal_ex(gcm, tag.data(), &length) == 1);
        ENSURE(EVP_CIPHER_CTX_ctrl(gcm, EVP_CTRL_AEAD_GET_TAG, 16, tag.data()) == 1);
    });
    EVP_CIPHER_CTX_free(gcm);
}

void our_signature(run& repeat, std::size_t size, signing_algorithm algorithm) {
    const message sent(size);
    auto with = signer::create(algorithm, secret_bytes<16>()).value();
    std::uint64_t id = 0;
    message_signature signature{};
    measure(repeat, [&] { signature = with.sign(sent.parts, {.message_id = ++id}).value(); });
    ENSURE(signature != message_signature{});
}

// --- sealing

void raw_seal(run& repeat, std::size_t size, const EVP_CIPHER* cipher) {
    const message sent(size);
    std::vector<std::byte> sealed(sent.whole.size());
    const bool is_ccm = EVP_CIPHER_get_mode(cipher) == EVP_CIPH_CCM_MODE;
    const int bytes = static_cast<int>(sent.whole.size());
    EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
    ENSURE(EVP_EncryptInit_ex(context, cipher, nullptr, nullptr, nullptr) == 1);
    if (is_ccm) {
        ENSURE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 11, nullptr) == 1);
        ENSURE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, nullptr) == 1);
    }
    ENSURE(EVP_EncryptInit_ex(context, nullptr, nullptr, zero_key, nullptr) == 1);
    std::array<unsigned char, 32> associated{};
    std::array<unsigned char, 16> tag;
    int length = 0;
    measure(repeat, [&] {
        ++associated[0];
        ENSURE(EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, associated.data()) == 1);
        if (is_ccm) ENSURE(EVP_EncryptUpdate(context, nullptr, &length, nullptr, bytes) == 1);
        ENSURE(EVP_EncryptUpdate(context, nullptr, &length, associated.data(), 32) == 1);
        ENSURE(EVP_EncryptUpdate(context, chars(sealed), &length, chars(sent.whole), bytes) == 1);
        ENSURE(EVP_EncryptFinal_ex(context, tag.data(), &length) == 1);
        ENSURE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag.data()) == 1);
    });
    EVP_CIPHER_CTX_free(context);
}

void our_seal(run& repeat, std::size_t size, cipher_algorithm algorithm) {
    const message sent(size);
    system_random secrets;
    sealing_key key{cipher_key(algorithm)};
    auto with = key.make_sealer(secrets).value();
    std::vector<std::byte> sealed(smb::wire::transform_header_bytes + sent.whole.size());
    measure(repeat, [&] { ENSURE(with.seal(1, sent.parts, sealed).has_value()); });
}

void our_open(run& repeat, std::size_t size, cipher_algorithm algorithm) {
    const message sent(size);
    system_random secrets;
    sealing_key key{cipher_key(algorithm)};
    std::vector<std::byte> sealed(smb::wire::transform_header_bytes + sent.whole.size());
    ENSURE(key.make_sealer(secrets).value().seal(1, sent.parts, sealed).has_value());
    const bytes_view header = *bytes_view(sealed).first(smb::wire::transform_header_bytes);
    const bytes_view ciphertext = *bytes_view(sealed).from(smb::wire::transform_header_bytes);
    auto with = opener::create(cipher_key(algorithm)).value();
    std::vector<std::byte> plain(sent.whole.size());
    measure(repeat, [&] { ENSURE(with.open(header, std::span(&ciphertext, 1), plain)); });
}

struct piece {
    const char* name;
    std::size_t bytes;
};
constexpr piece pieces[] = {{"100", 100}, {"4k", 4096}, {"64k", 65536}, {"1m", 1 << 20}};

// A number of messages such that a repeat takes some tens of milliseconds.
workload_options options_for(const std::string& what, const piece& size, double gigabytes_per_second) {
    const double ns_per_message = 400 + static_cast<double>(size.bytes) / gigabytes_per_second;
    return {.name = what + "_" + size.name,
            .metric = size.bytes < 1000 ? metric::time_per_operation : metric::gigabytes_per_second,
            .operations = static_cast<std::uint64_t>(30e6 / ns_per_message) + 1,
            .bytes_per_operation = header_bytes + size.bytes,
            .cpu = cpu_clock::thread};
}

void add_signing(benchmark& bench, const piece& size) {
    const std::size_t bytes = size.bytes;
    bench.add(options_for("sign_hmac_sha256", size, 1.5))
        .subject("limit", [=](run& r) { raw_mac(r, bytes, "HMAC", OSSL_MAC_PARAM_DIGEST, "SHA256"); })
        .subject("sluice.signer", [=](run& r) { our_signature(r, bytes, signing_algorithm::hmac_sha256); });
    bench.add(options_for("sign_aes_cmac", size, 1))
        .subject("limit", [=](run& r) { raw_mac(r, bytes, "CMAC", OSSL_MAC_PARAM_CIPHER, "AES-128-CBC"); })
        .subject("sluice.signer", [=](run& r) { our_signature(r, bytes, signing_algorithm::aes_cmac); });
    bench.add(options_for("sign_aes_gmac", size, 7))
        .subject("limit", [=](run& r) { raw_gmac(r, bytes); })
        .subject("sluice.signer", [=](run& r) { our_signature(r, bytes, signing_algorithm::aes_gmac); });
}

void add_sealing(benchmark& bench, const piece& size) {
    struct cipher {
        const char* name;
        cipher_algorithm algorithm;
        const EVP_CIPHER* raw;
        double gigabytes_per_second;
    };
    const std::size_t bytes = size.bytes;
    for (const cipher& each :
         {cipher{"seal_aes_128_ccm", cipher_algorithm::aes_128_ccm, EVP_aes_128_ccm(), 1.1},
          cipher{"seal_aes_128_gcm", cipher_algorithm::aes_128_gcm, EVP_aes_128_gcm(), 4},
          cipher{"seal_aes_256_ccm", cipher_algorithm::aes_256_ccm, EVP_aes_256_ccm(), 0.9},
          cipher{"seal_aes_256_gcm", cipher_algorithm::aes_256_gcm, EVP_aes_256_gcm(), 4}}) {
        bench.add(options_for(each.name, size, each.gigabytes_per_second))
            .subject("limit", [=](run& r) { raw_seal(r, bytes, each.raw); })
            .subject("sluice.sealer", [=](run& r) { our_seal(r, bytes, each.algorithm); })
            .subject("sluice.opener", [=](run& r) { our_open(r, bytes, each.algorithm); });
    }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark bench("smb_crypto", "What do signing and sealing an SMB message cost per byte?");
    for (const piece& size : pieces) {
        add_signing(bench, size);
        add_sealing(bench, size);
    }
    return bench.main(argc, argv);
}
