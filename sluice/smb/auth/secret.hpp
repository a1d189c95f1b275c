#pragma once

#include <algorithm>
#include <array>

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// Overwrites with zeros. The compiler must not remove this, even if the bytes are not read again.
void wipe(mutable_bytes bytes) noexcept;

/// Returns whether both are equal. The duration depends on the lengths alone, so that it does not
/// reveal how many bytes of a guess are right. Lengths are not secret: different ones compare
/// unequal at once.
[[nodiscard]] bool equal_in_constant_time(bytes_view a, bytes_view b) noexcept;

/// `Size` secret bytes: a key, or the source of one. They are overwritten when destroyed or moved
/// from, cannot be printed or compared by accident, and are copied only by an explicit copy().
/// Thread safety: a value. Allocates: nothing.
template <std::size_t Size>
class secret_bytes {
public:
    static constexpr std::size_t size = Size;

    /// All zero.
    secret_bytes() noexcept = default;
    explicit secret_bytes(const std::array<std::byte, Size>& bytes) noexcept : bytes_(bytes) {}
    /// Copies the first `Size` bytes of `from`, which is at least that long.
    explicit secret_bytes(bytes_view from) noexcept {
        ENSURE(from.size() >= Size);
        std::copy_n(from.begin(), Size, bytes_.begin());
    }
    ~secret_bytes() { wipe(bytes_); }

    secret_bytes(secret_bytes&& other) noexcept : bytes_(other.bytes_) { wipe(other.bytes_); }
    secret_bytes& operator=(secret_bytes&& other) noexcept {
        if (this != &other) {
            bytes_ = other.bytes_;
            wipe(other.bytes_);
        }
        return *this;
    }
    secret_bytes(const secret_bytes&) = delete;
    secret_bytes& operator=(const secret_bytes&) = delete;

    [[nodiscard]] secret_bytes copy() const noexcept { return secret_bytes(bytes_); }

    [[nodiscard]] bytes_view view() const noexcept { return bytes_; }
    [[nodiscard]] mutable_bytes mutable_view() noexcept { return bytes_; }

private:
    std::array<std::byte, Size> bytes_{};
};

/// The key that authentication agrees on, from which all others are derived. NTLM generates 16
/// bytes.
using session_key = secret_bytes<16>;

}  // namespace sluice::smb::auth
