#pragma once

#include <array>
#include <cstdint>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// The stream cipher RC4. It is broken as a cipher and only used for NTLM's key exchange and
/// message signatures. It contains a key, so it is wiped when destroyed. Allocates: nothing. Thread
/// safety: none of its own; each call advances the stream.
class rc4 {
public:
    /// `key` has 1 to 256 bytes.
    explicit rc4(bytes_view key) noexcept;
    ~rc4();
    rc4(const rc4&) = delete;
    rc4& operator=(const rc4&) = delete;

    /// Encrypts or decrypts in place; both are the same operation.
    void apply(mutable_bytes bytes) noexcept;

private:
    std::array<std::uint8_t, 256> state_;
    std::uint8_t i_ = 0;
    std::uint8_t j_ = 0;
};

}  // namespace sluice::smb::auth
