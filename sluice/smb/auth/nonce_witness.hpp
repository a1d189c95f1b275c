#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// The name of a key, from which the key cannot be computed.
using key_fingerprint = std::array<std::byte, 8>;

/// Receives every nonce under which this process signs a message by AES-GMAC, or encrypts one. A simulation
/// checks that none is used twice; a server has no witness.
class nonce_witness {
public:
    /// Thread safety: called by all threads that sign or encrypt.
    virtual void used(const key_fingerprint& key, bytes_view nonce) noexcept = 0;

protected:
    ~nonce_witness() = default;
};

/// Replaces the witness; null: none. Not while a message is signed or encrypted.
/// Lifetime: the caller keeps it until it is replaced.
void set_nonce_witness(nonce_witness* seen_by) noexcept;

/// Returns a name of the key for one algorithm. Allocates: nothing.
[[nodiscard]] key_fingerprint fingerprint_of(bytes_view key, std::uint16_t algorithm) noexcept;

namespace detail {

void report_nonce(const key_fingerprint& key, bytes_view nonce) noexcept;

}  // namespace detail

}  // namespace sluice::smb::auth
