#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace sluice::fat {

/// A code page in which some bytes from 0x80 on begin a two-byte character, as defined by the
/// host's iconv(3). The constructor converts all characters, so that no later call can block or
/// fail.
///
/// Invariants: bytes below 0x80 are ASCII, and not in here; no character is 0 or a surrogate.
/// Thread safety: immutable. Allocates: 256 KiB.
class double_byte_page {
public:
    static constexpr char16_t missing = u'\ufffd';

    /// `charset` as iconv_open(3) wants it. One that the host does not have has no characters.
    explicit double_byte_page(const char* charset);

    [[nodiscard]] bool is_known() const noexcept { return is_known_; }
    /// Whether a byte, from 0x80 on, needs another.
    [[nodiscard]] bool is_lead(unsigned char byte) const noexcept { return is_lead_[byte]; }
    /// `missing` if nothing is written so. A single byte is its own code, two are lead << 8 | trail.
    [[nodiscard]] char16_t character(std::uint16_t code) const noexcept { return characters_[code]; }
    /// 0 if there is none.
    [[nodiscard]] std::uint16_t code(char16_t character) const noexcept { return codes_[character]; }

private:
    bool is_known_ = false;
    std::array<bool, 256> is_lead_{};
    std::vector<char16_t> characters_;  // by code
    std::vector<std::uint16_t> codes_;  // by character
};

}  // namespace sluice::fat
