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
class dbcs_code_page {
public:
    static constexpr char16_t missing = u'\ufffd';

    /// `charset` is a name for iconv_open(3). A character set that the host lacks has no
    /// characters.
    explicit dbcs_code_page(const char* charset);

    [[nodiscard]] bool is_known() const noexcept { return is_known_; }
    /// Returns whether a byte, from 0x80 on, begins a two-byte character.
    [[nodiscard]] bool is_lead(unsigned char byte) const noexcept { return is_lead_[byte]; }
    /// Returns the character of a code, or `missing`. The code of a single byte is the byte, that
    /// of two is lead << 8 | trail.
    [[nodiscard]] char16_t character(std::uint16_t code) const noexcept { return characters_[code]; }
    /// Returns the code of a character; 0 if there is none.
    [[nodiscard]] std::uint16_t code(char16_t character) const noexcept { return codes_[character]; }

private:
    bool is_known_ = false;
    std::array<bool, 256> is_lead_{};
    std::vector<char16_t> characters_;  // by code
    std::vector<std::uint16_t> codes_;  // by character
};

}  // namespace sluice::fat
