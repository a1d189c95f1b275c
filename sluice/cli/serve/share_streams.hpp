#pragma once

#include <span>
#include <string>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/cli/serve/share_root.hpp"
#include "sluice/smb/server/report/event_log.hpp"
#include "sluice/smb/server/session/share_list.hpp"

namespace sluice::cli {

/// The directory that has the store of a share's large streams if it is on the same file system;
/// otherwise the topmost directory between the two that is.
struct streams_root {
    std::string path{};        // empty: the share itself
    std::string unanswered{};  // the same as a share names it, if its file system has not answered
};

/// Returns the outermost directory among the shares that contains this one, so that all of them
/// find the large streams of a file in one store (docs/formats/streams.md). Also if it is shared
/// read-only: where the streams are must not depend on that. Resolves symbolic links only in the
/// paths of shares that have answered. Allocates: paths. Blocks: for the file systems that have
/// answered.
[[nodiscard]] streams_root streams_root_of(std::span<const share_options> shares, const share_options& share,
                                           const share_roots& answered);

/// Writes a warning for each share that cannot store all named streams.
void report_stream_limits(const smb::server::share_list& shares, smb::server::event_log& log);

}  // namespace sluice::cli
