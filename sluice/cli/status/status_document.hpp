#pragma once

#include <optional>
#include <span>
#include <string>

#include "sluice/cli/status/json_writer.hpp"
#include "sluice/cli/status/open_totals.hpp"
#include "sluice/cli/status/rate_window.hpp"
#include "sluice/smb/server/report/snapshot.hpp"

// The document that a running server sends to `sluice status`: docs/formats/status.md. The
// functions below write its parts, in this order.

namespace sluice::cli {

/// Increases if an older reader would misunderstand the document, not for additions.
inline constexpr unsigned status_version = 1;

/// Writes the beginning of the document: everything except the lists of sessions and opens, and
/// their totals. `loop_delays_ms` has the delay of each loop.
void write_status_head(json_writer& to, const smb::server::server_snapshot& totals, const rate_window& rates,
                       std::span<const double> loop_delays_ms);
/// Write the elements of "sessions" and "opens".
void write_session(json_writer& to, const smb::server::session_status& one);
void write_open(json_writer& to, const smb::server::open_status& one);
/// Writes the totals of the opens, and ends the document.
void write_status_tail(json_writer& to, const smb::server::server_snapshot& totals, const open_totals& opens);
/// Returns a document that has only an error message.
[[nodiscard]] std::string status_refusal(std::string_view why);

}  // namespace sluice::cli
