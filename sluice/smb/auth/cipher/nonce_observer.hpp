#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// An identifier of a key that does not reveal the key.
using key_fingerprint = std::array<std::byte, 8>;

/// An observer of every nonce with which this process signs a message by AES-GMAC, or encrypts one.
/// A simulation checks that none is used twice. A server has no observer.
class nonce_observer {
public:
    /// Thread safety: called by all threads that sign or encrypt.
    virtual void used(const key_fingerprint& key, bytes_view nonce) noexcept = 0;

protected:
    ~nonce_observer() = default;
};

/// Replaces the observer; null removes it. Must not be called while a message is signed or
/// encrypted.
/// Lifetime: the caller keeps it until it is replaced.
void set_nonce_observer(nonce_observer* seen_by) noexcept;

/// Returns an identifier of the key for one algorithm. Allocates: nothing.
[[nodiscard]] key_fingerprint fingerprint_of(bytes_view key, std::uint16_t algorithm) noexcept;

namespace detail {

void report_nonce(const key_fingerprint& key, bytes_view nonce) noexcept;

}  // namespace detail

}  // namespace sluice::smb::auth
