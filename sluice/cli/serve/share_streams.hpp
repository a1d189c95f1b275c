#pragma once

#include <span>
#include <string>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/share_root.hpp"
#include "sluice/smb/server/report/event_log.hpp"
#include "sluice/smb/server/session/share_list.hpp"

namespace sluice::cli {

/// Returns the outermost directory among the shares that contains this one and is written, so that
/// all of them find the large streams of a file in one store (docs/formats/streams.md). Empty if
/// there is none. Resolves symbolic links only in the paths of shares that have answered.
/// Allocates: paths. Blocks: for the file systems that have answered.
[[nodiscard]] std::string streams_root_of(std::span<const share_options> shares, const share_options& share,
                                          const share_roots& answered);

/// Writes a warning for each share that cannot store all named streams.
void report_stream_limits(const smb::server::share_list& shares, smb::server::event_log& log);

}  // namespace sluice::cli
