#pragma once

#include <cstdint>
#include <string>

namespace sluice::fat {

/// Returns why a file of that version cannot be read, with the remedy if a later program has
/// written it. Allocates: the text.
[[nodiscard]] inline std::string unsupported_version(std::uint32_t found, std::uint32_t supported) {
    return "unsupported version " + std::to_string(found) + "; this program supports version " +
           std::to_string(supported) + (found > supported ? "; use a newer sluice" : "");
}

}  // namespace sluice::fat
