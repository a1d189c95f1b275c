#pragma once

#include <string>

#include "sluice/cli/status/json_value.hpp"

namespace sluice::cli {

/// Returns the output of `sluice status` for the document of a server: tables for people, 80
/// columns wide. Additions in documents of another version are ignored.
[[nodiscard]] std::string status_text(const json_value& document);

/// Returns the reason of an element of `refusals`, as in "logon failed: wrong password".
[[nodiscard]] std::string refusal_reason(const json_value& refusal);

}  // namespace sluice::cli
