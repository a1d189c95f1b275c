#pragma once

#include <array>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// The running SHA-512 over what was said before the session had keys ([MS-SMB2] 3.1.4.4.1), which SMB 3.1.1
/// mixes into them, so that whoever changed a message of the negotiation ends up with other keys. A
/// connection has one; each session set-up goes on from a copy of it. Zero at first.
/// Thread safety: a value. Allocates: a hash context within add(), freed again.
class preauth_integrity {
public:
    using value_type = std::array<std::byte, 64>;

    /// Takes in a whole message, from its SMB2 header on, in parts that stand one after another on the wire.
    void add(std::span<const bytes_view> message) noexcept;
    void add(bytes_view message) noexcept { add(std::span(&message, 1)); }

    [[nodiscard]] const value_type& value() const noexcept { return value_; }

private:
    value_type value_{};
};

}  // namespace sluice::smb::auth
