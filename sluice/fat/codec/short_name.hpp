#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/fat/codec/code_page.hpp"
#include "sluice/fat/codec/directory_entry.hpp"

// Short names: eight characters, a dot, three more, in upper case of some code page; and the
// conversion of other names to short ones.

namespace sluice::fat {

/// Bits of directory_entry::case_bits: the part is shown in lower case.
inline constexpr std::uint8_t lower_base = 0x08;
inline constexpr std::uint8_t lower_extension = 0x10;

/// A short name in the on-disk form.
struct short_name {
    short_name_bytes bytes{};
    std::uint8_t case_bits = 0;

    [[nodiscard]] friend bool operator==(const short_name&, const short_name&) noexcept = default;
};

/// Returns the name to show for a short name; empty if it is blank. Allocates: the string.
[[nodiscard]] std::string text_of(const short_name_bytes& bytes, std::uint8_t case_bits, code_page page);

/// Returns the text of a volume's label, which is encoded like a short name but without a dot.
/// Allocates: the string.
[[nodiscard]] std::string text_of_label(const short_name_bytes& bytes, code_page page);

/// Returns the short name that represents `name` exactly, including case, so that it needs no long
/// name. Returns std::nullopt if there is none. Invariant: text_of(*exactly(n)) == n. Allocates: a
/// little.
[[nodiscard]] std::optional<short_name> exactly(std::string_view name, code_page page);

/// The basis of the short names for `name`: upper case, without leading dots and spaces. An
/// underscore replaces characters that the page lacks and + , ; = [ ]. The base is cut after eight
/// bytes and the extension, after the last dot, after three.
struct short_name_basis {
    std::array<unsigned char, 8> base{};  // padded with spaces; not blank
    std::array<unsigned char, 3> extension{};
    std::size_t base_length = 0;
    // Bit set for each byte of `base` that is the second of a character.
    std::uint8_t second_bytes = 0;
    [[nodiscard]] friend bool operator==(const short_name_basis&, const short_name_basis&) noexcept = default;
};
[[nodiscard]] short_name_basis basis_of(std::string_view name, code_page page);

/// The highest number at the end of a short name.
inline constexpr std::uint32_t short_name_number_max = 999'999;

/// Returns "LONGNA~1.TXT" for the basis of "Long name.txt" and 1. `number` is from 1 to
/// short_name_number_max.
[[nodiscard]] short_name_bytes numbered(const short_name_basis& basis, std::uint32_t number) noexcept;

}  // namespace sluice::fat
