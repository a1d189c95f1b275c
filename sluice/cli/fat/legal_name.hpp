#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// Names of the host that FAT cannot store, and legal names in their place. The mapping is
// documented in docs/guide/fat.md.

namespace sluice::cli {

/// Returns why FAT cannot store `name`, one component of a path, as a phrase: "':' is not allowed".
/// Returns nothing if it can. Allocates: the phrase. Complexity: linear.
[[nodiscard]] std::optional<std::string> fat_name_problem(std::string_view name);

/// Returns the legal name for an illegal one. Every character that FAT does not allow, '%', every
/// byte that is not UTF-8, and a dot or space at the end become '%' and two hexadecimal digits per
/// byte. A result of more than 255 UTF-16 units is cut, and gets '~' and the CRC-32 of `name`
/// before its extension. Two illegal names have different results, except names that are too long
/// and have the same CRC-32. Allocates: the string. Complexity: linear.
[[nodiscard]] std::string legal_fat_name(std::string_view name);

/// Returns `name`, which is legal, with "~number" before its extension, cut to the
/// length that FAT allows.
/// Allocates: the string.
[[nodiscard]] std::string numbered_fat_name(std::string_view name, std::size_t number);

/// Returns whether FAT could generate `name` as the short name of a longer one
/// ("LONGNA~1.TXT"), or more.
[[nodiscard]] bool may_be_generated_short_name(std::string_view name);

}  // namespace sluice::cli
