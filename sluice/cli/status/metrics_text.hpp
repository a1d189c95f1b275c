#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/cli/status/open_totals.hpp"
#include "sluice/smb/server/report/snapshot.hpp"

namespace sluice::cli {

/// The resources that the process uses, from /proc.
struct process_use {
    double cpu_seconds = 0;
    std::uint64_t resident_bytes = 0;
    std::uint64_t descriptors = 0;
};
[[nodiscard]] process_use process_use_now() noexcept;

/// Returns the metrics of a server in Prometheus text format, version 0.0.4. Names:
/// docs/formats/status.md. Allocates: the text.
[[nodiscard]] std::string metrics_text(const smb::server::server_snapshot& totals, const open_totals& opens,
                                       const process_use& process);

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace sluice::cli
