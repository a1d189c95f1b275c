#pragma once

#include <optional>
#include <string>

#include "sluice/cli/status/json_writer.hpp"
#include "sluice/cli/status/open_totals.hpp"
#include "sluice/cli/status/rate_window.hpp"
#include "sluice/smb/server/report/snapshot.hpp"

// The document a running server answers `sluice status` with: docs/formats/status.md. It is written piece by
// piece, in the order of the functions below.

namespace sluice::cli {

/// Changes with what older readers would misunderstand, not with what is added.
inline constexpr unsigned status_version = 1;

/// What begins the document: all that is known before sessions and opens are looked at one by one.
void write_status_head(json_writer& to, const smb::server::server_snapshot& totals, const rate_window& rates);
/// The elements of "sessions" and "opens".
void write_session(json_writer& to, const smb::server::session_status& one);
void write_open(json_writer& to, const smb::server::open_status& one);
/// What is known when all have been looked at. Ends the document.
void write_status_tail(json_writer& to, const smb::server::server_snapshot& totals, const open_totals& opens);
/// A document that says only why there is no other.
[[nodiscard]] std::string status_refusal(std::string_view why);

}  // namespace sluice::cli
