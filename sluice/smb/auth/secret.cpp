#include "sluice/smb/auth/secret.hpp"

#include <openssl/crypto.h>

namespace sluice::smb::auth {

void wipe(mutable_bytes bytes) noexcept {
    OPENSSL_cleanse(bytes.data(), bytes.size());
}

bool equal_in_constant_time(bytes_view a, bytes_view b) noexcept {
    if (a.size() != b.size()) return false;
    return a.empty() or CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace sluice::smb::auth
