#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::cli {

// Values of variables that a service manager sets. Another program may have set them to anything.

/// Returns the value of a variable and removes the variable, so that no child process inherits it;
/// empty if it is not set. Thread safety: the main thread, before there are others.
[[nodiscard]] std::string take_variable(const char* name);

/// Returns the number that the text is, in decimal digits only; std::nullopt if it is not one, or
/// exceeds `most`.
[[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view text, std::uint64_t most) noexcept;

/// Returns the value in quotes for a message, shortened if it is long.
[[nodiscard]] std::string shown_value(std::string_view value);

}  // namespace sluice::cli
