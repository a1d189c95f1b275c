#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sluice::cli {

/// Parses "100", "64k", "1 GiB" or "1MB": a number of bytes with an optional suffix, in units of
/// 1024. Returns std::nullopt if the text is not of this form, or the number exceeds 64 bits.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string text);

/// Returns the rule of parse_size() if it does not accept the text, as option_syntax::check() needs
/// it.
[[nodiscard]] std::string validate_size(const std::string& text);

/// Returns "1.5 MiB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace sluice::cli
