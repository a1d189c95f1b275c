#pragma once

#include <array>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// The running SHA-512 of the messages before the session had keys ([MS-SMB2] 3.1.4.4.1). SMB 3.1.1
/// derives the keys from it, so that an attacker who changes a message of the negotiation causes
/// different keys. A connection has one; each session setup continues from a copy of it. It is
/// initially zero. Thread safety: a value. Allocates: a hash context within add(), which is freed
/// again.
class preauth_integrity {
public:
    using value_type = std::array<std::byte, 64>;

    /// Adds a complete message, from its SMB2 header on, in consecutive parts.
    void add(std::span<const bytes_view> message) noexcept;
    void add(bytes_view message) noexcept { add(std::span(&message, 1)); }

    [[nodiscard]] const value_type& value() const noexcept { return value_; }

private:
    value_type value_{};
};

}  // namespace sluice::smb::auth
