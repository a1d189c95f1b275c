#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/status/findings.hpp"

namespace sluice::cli::doctor {

/// Returns the cheap checks of this host as a function, for the status page: see findings(). It
/// owns a copy of the options without their secrets, and may be called on any thread that is not an
/// event loop. Allocates: yes.
[[nodiscard]] std::function<std::vector<cli::finding>()> page_checks(serve_options options,
                                                                     std::vector<std::string> addresses);

}  // namespace sluice::cli::doctor
