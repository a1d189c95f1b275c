#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::vfs {

/// Returns whether a name has the form "EIGHT678.THR" of DOS in any case ([MS-FSCC] 2.1.5.2.1), so
/// that programs which know only such names can use it as it is. Complexity: constant.
[[nodiscard]] bool is_short_name(std::string_view name) noexcept;

/// The name of a file for programs that know only short names. Upper case, or empty: none. A value.
class short_name {
public:
    static constexpr std::size_t characters_max = 12;

    constexpr short_name() noexcept = default;
    /// `text` is empty, or a short name in any case.
    explicit short_name(std::string_view text) noexcept;

    [[nodiscard]] constexpr std::string_view view() const noexcept { return {text_.data(), size_}; }
    [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] friend constexpr bool operator==(const short_name&, const short_name&) noexcept = default;
    [[nodiscard]] friend constexpr auto operator<=>(const short_name&, const short_name&) noexcept = default;

private:
    std::array<char, characters_max> text_{};  // zeros after the name
    std::uint8_t size_ = 0;
};

/// The number of short names to try before a name has none.
inline constexpr std::uint32_t short_name_attempts_max = 76;

/// The number of short names to try that have no hash of the name.
inline constexpr std::uint32_t plain_short_name_attempts = 4;

/// Returns the short name to try for a name that has not the form of one: for the attempts 0 to 3
/// its first six characters and ~1 to ~4, then its first two, four digits of a hash, and ~1 to ~9,
/// with another hash for each nine attempts. Other files of the directory may have it. The name of
/// an attempt never changes, because directories store the number. Complexity: linear in the name.
[[nodiscard]] short_name short_name_for(std::string_view name, std::uint32_t attempt) noexcept;

/// Returns whether a text, in any case, has the form of the results of short_name_for().
/// Complexity: constant.
[[nodiscard]] bool may_be_generated(std::string_view text) noexcept;

}  // namespace sluice::vfs
