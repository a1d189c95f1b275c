#pragma once

#include <string>
#include <vector>

#include "sluice/cli/doctor/finding.hpp"

namespace sluice::cli::doctor {

/// Returns the findings for people: problems first, then warnings, then notes; each with its
/// evidence and remedy. The texts are made safe for a terminal. `colours`: with the colours of a
/// terminal, which only add to the words. Allocates: the text. Thread safety: a pure function.
[[nodiscard]] std::string report_text(const std::string& subject, const std::vector<finding>& all,
                                      bool colours);

/// Returns the findings as one JSON document and a line end (docs/guide/doctor.md).
[[nodiscard]] std::string report_json(const std::string& subject, const std::vector<finding>& all);

}  // namespace sluice::cli::doctor
