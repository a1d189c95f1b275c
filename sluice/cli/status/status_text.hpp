#pragma once

#include <string>

#include "sluice/cli/status/json_value.hpp"

namespace sluice::cli {

/// What `sluice status` shows of a server's document: tables for people, 80 columns wide. What a document of
/// another version has besides is left out.
[[nodiscard]] std::string status_text(const json_value& document);

}  // namespace sluice::cli
