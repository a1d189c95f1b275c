#include "sluice/smb/auth/cipher/cipher_context.hpp"

#include <openssl/evp.h>

#include <algorithm>

namespace sluice::smb::auth::detail {
namespace {

constexpr std::size_t update_bytes_max = std::size_t{1} << 30;  // OpenSSL counts in int
constexpr int as_before = -1;

struct algorithm_deleter {
    void operator()(EVP_CIPHER* algorithm) const noexcept { EVP_CIPHER_free(algorithm); }
};

const unsigned char* as_chars(bytes_view bytes) noexcept {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

void cipher_context_deleter::operator()(evp_cipher_ctx_st* context) const noexcept {
    EVP_CIPHER_CTX_free(context);
}

result<cipher_context> start_cipher(const cipher_options& options, bytes_view key) noexcept {
    const std::unique_ptr<EVP_CIPHER, algorithm_deleter> algorithm(
        EVP_CIPHER_fetch(nullptr, options.name, nullptr));
    if (!algorithm) return failure(error(std::errc::not_supported, "find a cipher in OpenSSL"));
    ENSURE(EVP_CIPHER_get_key_length(algorithm.get()) == static_cast<int>(key.size()));

    cipher_context cipher(EVP_CIPHER_CTX_new());
    const int encrypts = options.direction == cipher_direction::encrypt ? 1 : 0;
    const auto lacks_memory = [] { return failure(error(std::errc::not_enough_memory, "start a cipher")); };
    if (!cipher) return lacks_memory();
    if (EVP_CipherInit_ex2(cipher.get(), algorithm.get(), nullptr, nullptr, encrypts, nullptr) != 1) {
        return lacks_memory();
    }
    // Both lengths must be known before the key, because CCM computes its first block from them.
    if (options.nonce_bytes != 0) {
        ENSURE(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_IVLEN, options.nonce_bytes, nullptr) == 1);
    }
    if (options.tag_bytes != 0) {
        ENSURE(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_AEAD_SET_TAG, options.tag_bytes, nullptr) == 1);
    }
    if (EVP_CipherInit_ex2(cipher.get(), nullptr, as_chars(key), nullptr, as_before, nullptr) != 1) {
        return lacks_memory();
    }
    EVP_CIPHER_CTX_set_padding(cipher.get(), 0);
    return cipher;
}

void restart_cipher(const cipher_context& cipher, bytes_view nonce) noexcept {
    ENSURE(EVP_CipherInit_ex2(cipher.get(), nullptr, nullptr, as_chars(nonce), as_before, nullptr) == 1);
}

bool update_cipher(const cipher_context& cipher, bytes_view in, std::byte* out) noexcept {
    while (!in.empty()) {
        const bytes_view piece = *in.first(std::min(in.size(), update_bytes_max));
        int written = 0;
        if (EVP_CipherUpdate(cipher.get(), reinterpret_cast<unsigned char*>(out), &written, as_chars(piece),
                             static_cast<int>(piece.size())) != 1) {
            return false;
        }
        if (out != nullptr) {
            ENSURE(written == static_cast<int>(piece.size()));
            out += piece.size();
        }
        in = *in.from(piece.size());
    }
    return true;
}

}  // namespace sluice::smb::auth::detail
