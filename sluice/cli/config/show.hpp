#pragma once

#include <string>

#include "sluice/cli/config/effective_settings.hpp"

namespace sluice::cli {

/// Returns the configuration as TOML. A comment after each setting states where it comes from, and
/// settings without a value are comments. Allocates: the text. Pure.
[[nodiscard]] std::string shown_text(const effective_configuration& all, const std::string& file);

/// Returns the same as one JSON document, in one line.
[[nodiscard]] std::string shown_json(const effective_configuration& all, const std::string& file);

}  // namespace sluice::cli
