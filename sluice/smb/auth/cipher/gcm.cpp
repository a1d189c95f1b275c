#include "sluice/smb/auth/cipher/gcm.hpp"

#include <openssl/evp.h>

#include <new>

#include "sluice/smb/auth/cipher/wide_gcm.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth::detail {

gcm::gcm() noexcept = default;
gcm::gcm(gcm&& other) noexcept = default;
gcm& gcm::operator=(gcm&& other) noexcept = default;
gcm::~gcm() = default;

result<gcm> gcm::create(bytes_view key, cipher_direction direction, const gcm_batches* by) noexcept {
    gcm made;
    made.direction_ = direction;
    if (by != nullptr) {
        made.wide_.reset(new (std::nothrow) wide_gcm(key, *by));
        if (made.wide_ == nullptr) return failure(error(std::errc::not_enough_memory, "start a cipher"));
        return made;
    }
    auto started = start_cipher(
        {.name = key.size() == 16 ? "AES-128-GCM" : "AES-256-GCM", .direction = direction, .nonce_bytes = 12},
        key);
    if (!started) return failure(started.error());
    made.openssl_ = std::move(*started);
    return made;
}

void gcm::start(bytes_view nonce) noexcept {
    if (wide_ != nullptr)
        wide_->start(nonce);
    else
        restart_cipher(openssl_, nonce);
}

void gcm::authenticate(bytes_view part) noexcept {
    if (wide_ != nullptr)
        wide_->authenticate(part);
    else
        ENSURE(update_cipher(openssl_, part, nullptr));
}

void gcm::pass(bytes_view in, std::byte* out) noexcept {
    if (wide_ == nullptr)
        ENSURE(update_cipher(openssl_, in, out));
    else if (direction_ == cipher_direction::encrypt)
        wide_->encrypt(in, out);
    else
        wide_->decrypt(in, out);
}

gcm::tag_type gcm::tag() noexcept {
    ENSURE(direction_ == cipher_direction::encrypt);
    if (wide_ != nullptr) return wide_->tag();
    unsigned char nothing_left[16];
    int none = 0;
    tag_type made;
    ENSURE(EVP_EncryptFinal_ex(openssl_.get(), nothing_left, &none) == 1 and none == 0);
    ENSURE(EVP_CIPHER_CTX_ctrl(openssl_.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(made.size()),
                               made.data()) == 1);
    return made;
}

bool gcm::has_tag(const tag_type& claimed) noexcept {
    ENSURE(direction_ == cipher_direction::decrypt);
    if (wide_ != nullptr) return equal_in_constant_time(wide_->tag(), claimed);
    tag_type copy = claimed;  // OpenSSL requires a mutable tag
    ENSURE(EVP_CIPHER_CTX_ctrl(openssl_.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(copy.size()),
                               copy.data()) == 1);
    unsigned char nothing_left[16];
    int none = 0;
    return EVP_DecryptFinal_ex(openssl_.get(), nothing_left, &none) == 1;
}

}  // namespace sluice::smb::auth::detail
