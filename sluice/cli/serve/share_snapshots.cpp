#include "sluice/cli/serve/share_snapshots.hpp"

#include "sluice/vfs/host/host_snapshots.hpp"

namespace sluice::cli {

const std::string& snapshot_pattern_of(const serve_options& options, const share_options& share) noexcept {
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

std::string validate_previous_versions(const std::string& pattern) {
    const auto parsed = vfs::snapshot_pattern::parse(pattern);
    return parsed ? std::string() : parsed.error();
}

}  // namespace sluice::cli
