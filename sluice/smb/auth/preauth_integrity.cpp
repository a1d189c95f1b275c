#include "sluice/smb/auth/preauth_integrity.hpp"

#include <openssl/evp.h>

#include <memory>

namespace sluice::smb::auth {

void preauth_integrity::add(std::span<const bytes_view> message) noexcept {
    struct deleter {
        void operator()(EVP_MD_CTX* hash) const noexcept { EVP_MD_CTX_free(hash); }
    };
    const std::unique_ptr<EVP_MD_CTX, deleter> hash(EVP_MD_CTX_new());
    // Every OpenSSL has SHA-512, so the only cause of a failure is lack of memory. Without the
    // hash, a downgrade would not be detected.
    ENSURE(hash and EVP_DigestInit_ex2(hash.get(), EVP_sha512(), nullptr) == 1);
    ENSURE(EVP_DigestUpdate(hash.get(), value_.data(), value_.size()) == 1);
    for (const bytes_view part : message)
        ENSURE(EVP_DigestUpdate(hash.get(), part.data(), part.size()) == 1);
    ENSURE(EVP_DigestFinal_ex(hash.get(), reinterpret_cast<unsigned char*>(value_.data()), nullptr) == 1);
}

}  // namespace sluice::smb::auth
