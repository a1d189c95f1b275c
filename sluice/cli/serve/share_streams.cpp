#include "sluice/cli/serve/share_streams.hpp"

#include <algorithm>
#include <filesystem>

#include "sluice/vfs/host/host_volume.hpp"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

// The directory, without symbolic links if its file system answers. Empty if it cannot be found.
fs::path place_of(const std::string& path, const share_roots& answered) {
    std::error_code unknown;
    if (answered.contains(path)) return fs::weakly_canonical(path, unknown);
    const fs::path named = fs::absolute(path, unknown).lexically_normal();
    return named.has_filename() ? named : named.parent_path();
}

}  // namespace

streams_root streams_root_of(std::span<const share_options> shares, const share_options& share,
                             const share_roots& answered) {
    const fs::path inner = place_of(share.path, answered);
    streams_root outermost;
    for (const share_options& each : shares) {
        // No user's directory contains that of another, so many of them take linear time.
        if (not each.referral.empty() or (each.is_home and share.is_home)) continue;
        const fs::path outer = place_of(each.path, answered);
        const bool contains = outer != inner and std::ranges::mismatch(outer, inner).in1 == outer.end();
        if (outer.empty() or not contains) continue;
        if (not outermost.path.empty() and outer.native().size() >= outermost.path.size()) continue;
        outermost = {.path = outer.string(),
                     .unanswered = answered.contains(each.path) ? std::string() : each.path};
    }
    return outermost;
}

void report_stream_limits(const smb::server::share_list& shares, smb::server::event_log& log) {
    constexpr auto warning = smb::server::event_severity::warning;
    const auto all = shares.current();
    for (const auto& each : *all) {
        const smb::server::share_configuration& share = each->configuration();
        const auto* const directory = dynamic_cast<const vfs::host_volume*>(share.volume.get());
        if (directory == nullptr) continue;  // a disk image, a referral, or IPC$
        if (not directory->features().has_streams)
            log.write(warning, "named streams are not available",
                      {{"share", share.name}, {"why", "the file system has no extended attributes"}});
        else if (directory->stream_problem())
            log.write(warning, "large streams are not available",
                      {{"share", share.name}, {"why", directory->explain_stream_problem()}});
    }
}

}  // namespace sluice::cli
