#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sluice/fat/codec/code_page.hpp"
#include "sluice/fat/codec/directory_entry.hpp"

// Short names: eight characters, a dot, three more, in upper case of some code page; and how a name that is
// none is shortened to one.

namespace sluice::fat {

/// Bits of directory_entry::case_bits: that part is to be shown in lower case.
inline constexpr std::uint8_t lower_base = 0x08;
inline constexpr std::uint8_t lower_extension = 0x10;

/// A short name as it is written.
struct short_name {
    short_name_bytes bytes{};
    std::uint8_t case_bits = 0;

    [[nodiscard]] friend bool operator==(const short_name&, const short_name&) noexcept = default;
};

/// The name to show for a short one; empty if it is blank. Allocates: the string.
[[nodiscard]] std::string text_of(const short_name_bytes& bytes, std::uint8_t case_bits, code_page page);

/// The text of a volume's label, which is written like a short name, but all in one. Allocates: the string.
[[nodiscard]] std::string text_of_label(const short_name_bytes& bytes, code_page page);

/// The short name that says exactly `name`, case included, so that no long one is needed; nothing if there is
/// none. Invariant: text_of(*exactly(n)) == n. Allocates: a little.
[[nodiscard]] std::optional<short_name> exactly(std::string_view name, code_page page);

/// What a short name for `name` is made from: leading dots and all spaces gone, what the page lacks and
/// + , ; = [ ] replaced by an underscore, in upper case, cut after eight and, behind the last dot, three.
struct short_name_basis {
    std::array<unsigned char, 8> base{};  // padded with spaces; not blank
    std::array<unsigned char, 3> extension{};
    std::size_t base_length = 0;
    std::uint8_t second_bytes =
        0;  // a one for each byte of `base` without which the one before means nothing
    [[nodiscard]] friend bool operator==(const short_name_basis&, const short_name_basis&) noexcept = default;
};
[[nodiscard]] short_name_basis basis_of(std::string_view name, code_page page);

/// The highest number a short name may end in.
inline constexpr std::uint32_t short_name_number_max = 999'999;

/// "LONGNA~1.TXT" for the basis of "Long name.txt" and 1. `number` is from 1 to short_name_number_max.
[[nodiscard]] short_name_bytes numbered(const short_name_basis& basis, std::uint32_t number) noexcept;

}  // namespace sluice::fat
