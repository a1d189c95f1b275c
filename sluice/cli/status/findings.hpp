#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/smb/server/report/snapshot.hpp"

namespace sluice::cli {

/// The weight of a finding. A note needs no attention.
enum class finding_severity : std::uint8_t { note, info, warning, error };

/// A fact about a server that its administrator should know.
struct finding {
    finding_severity severity = finding_severity::info;
    std::string what;        // a sentence without a full stop
    std::string evidence{};  // the observation behind it; may be empty
    std::string hint{};      // what to do; may be empty
};

/// Appends the findings that the totals of a server contain: event loops that were stuck, and
/// limits that were reached, or of which 80% are in use. Limits whose rejections are not counted,
/// such as credits, are in full use by design. Allocates: the list.
void add_findings_of(const smb::server::server_snapshot& totals, std::vector<finding>& to);

}  // namespace sluice::cli
