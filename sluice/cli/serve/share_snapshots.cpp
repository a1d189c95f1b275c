#include "sluice/cli/serve/share_snapshots.hpp"

#include "sluice/cli/serve/serve_rules.hpp"
#include "sluice/vfs/host/host_snapshots.hpp"

namespace sluice::cli {

std::string_view snapshot_pattern_of(const serve_options& options, const share_options& share) noexcept {
    if (share.previous_versions == no_previous_versions) return {};
    return share.previous_versions.empty() ? options.previous_versions : share.previous_versions;
}

std::string snapshot_directory_of(const serve_options& options, const share_options& share) {
    const auto pattern = vfs::snapshot_pattern::parse(snapshot_pattern_of(options, share));
    return pattern ? vfs::directory_of_snapshots(share.path, *pattern) : std::string();
}

std::optional<io::path_handle> open_snapshot_directory(const serve_options& options,
                                                       const share_options& share) {
    const auto pattern = vfs::snapshot_pattern::parse(snapshot_pattern_of(options, share));
    if (not pattern) return std::nullopt;
    auto opened = vfs::open_directory_of_snapshots(share.path, *pattern);
    return opened ? std::optional(*std::move(opened)) : std::nullopt;
}

}  // namespace sluice::cli
