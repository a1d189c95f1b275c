#include "sluice/smb/auth/cipher/nonce_observer.hpp"

#include <algorithm>
#include <atomic>

#include "sluice/base/endian.hpp"
#include "sluice/smb/auth/hmac.hpp"
#include "sluice/smb/auth/secret.hpp"

namespace sluice::smb::auth {
namespace {

// A global variable instead of a constructor parameter, so that a simulation observes every signer.
std::atomic<nonce_observer*> installed{nullptr};

}  // namespace

void set_nonce_observer(nonce_observer* seen_by) noexcept {
    installed.store(seen_by, std::memory_order_release);  // pairs with report_nonce()
}

key_fingerprint fingerprint_of(bytes_view key, std::uint16_t algorithm) noexcept {
    const le16 number(algorithm);
    const bytes_view part = bytes_of(number);
    hmac_sha256 keyed(key);
    const secret_bytes<32> code = keyed.code(std::span(&part, 1));
    key_fingerprint made;
    std::copy_n(code.view().begin(), made.size(), made.begin());
    return made;
}

namespace detail {

void report_nonce(const key_fingerprint& key, bytes_view nonce) noexcept {
    // Pairs with set_nonce_observer().
    nonce_observer* const present = installed.load(std::memory_order_acquire);
    if (present != nullptr) present->used(key, nonce);
}

}  // namespace detail

}  // namespace sluice::smb::auth
