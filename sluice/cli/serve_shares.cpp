#include "sluice/cli/serve_shares.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "sluice/cli/complaint.hpp"
#include "sluice/cli/fat/image.hpp"
#include "sluice/vfs/host/host_volume.hpp"

namespace sluice::cli {

using smb::server::smb_server;

namespace {

[[nodiscard]] bool is_image(const std::string& path) {
    std::error_code unknown;
    return std::filesystem::exists(parse_image(path).file, unknown) and
           not std::filesystem::is_directory(path, unknown);
}

// Returns whether any share of an image is writable: the shares have one engine.
[[nodiscard]] bool is_written(const serve_options& options, const share_options& image) {
    return not options.read_only and std::ranges::any_of(options.shares, [&](const share_options& each) {
        return not each.read_only and is_image(each.path) and is_same_image(each.path, image.path);
    });
}

// Opens a directory of the host, or a file that is a disk image.
[[nodiscard]] std::expected<std::shared_ptr<vfs::volume>, std::string> open_volume(
    const serve_options& options, const share_options& share, const share_sources& from) {
    const std::string& path = share.path;
    const bool read_only = share.read_only or options.read_only;
    if (share.offloads and is_image(path))
        return std::unexpected(path + ": 'offload' does not apply to disk images");
    if (is_image(path))
        return from.images.open(
            {.name = path, .options = share.image, .is_written = is_written(options, share)});
    if (share.image != image_options{})
        return std::unexpected(path + ": not a disk image, which is required for" + text_of(share.image));
    auto directory = vfs::host_volume::open(from.loop, path,
                                            {.read_only = read_only,
                                             .domains = &from.domains.table(),
                                             .offload_always = share.offloads or options.offload});
    if (not directory) return std::unexpected(about(path, directory.error()));
    from.domains.add(share.name, **directory);
    return *std::move(directory);
}

// The configuration of a share, without the volume.
[[nodiscard]] smb::server::share_configuration configuration_of(const share_options& share, bool read_only) {
    smb::server::share_configuration configuration;
    configuration.name = share.name;
    configuration.comment = share.comment;
    configuration.source = share.path + text_of(share.image);
    configuration.is_read_only = read_only;
    configuration.is_hidden = share.hidden or share.name.ends_with('$');
    configuration.users = share.users;
    if (share.encrypt) configuration.encryption = smb::server::protection::required;
    return configuration;
}

// Returns the volume of a share as it is served now; null if it is not.
[[nodiscard]] std::shared_ptr<vfs::volume> served_volume(const smb_server& server,
                                                         const smb::server::share_configuration& wanted) {
    const auto served = server.context().shares.current();
    for (const auto& each : *served) {
        if (each->is_pipes()) continue;
        const smb::server::share_configuration& now = each->configuration();
        if (now.name == wanted.name and now.source == wanted.source) return now.volume;
    }
    return nullptr;
}

}  // namespace

opened_shares open_shares(const serve_options& options, const share_sources& from) {
    std::vector<smb::server::share_configuration> opened;
    for (const share_options& share : options.shares) {
        const bool read_only = share.read_only or options.read_only;
        const auto refuse = [&](const std::string& why) {
            return std::unexpected(fmt::format("share '{}': {}", share.name, why));
        };
        if (const std::string why = from.hardening.why_not(share, read_only); not why.empty())
            return refuse(why);
        auto volume = open_volume(options, share, from);
        if (not volume) return refuse(volume.error());
        opened.push_back(configuration_of(share, read_only));
        opened.back().volume = *std::move(volume);
    }
    return opened;
}

opened_shares reopen_shares(const serve_options& options, const std::vector<std::string>& silent,
                            const smb_server& server, const share_sources& from) {
    const auto is_silent = [&](const share_options& share) {
        return std::ranges::find(silent, share.path) != silent.end();
    };
    serve_options answering = options;
    std::erase_if(answering.shares, is_silent);
    auto opened = open_shares(answering, from);
    if (not opened) return opened;
    for (const share_options& share : options.shares) {
        if (not is_silent(share)) continue;
        auto kept = configuration_of(share, share.read_only or options.read_only);
        kept.volume = served_volume(server, kept);
        server.context().log().write(
            smb::server::event_severity::error, "the file system of a share does not answer",
            {{"share", share.name},
             {"path", share.path},
             {"effect", kept.volume != nullptr ? "it stays as it is" : "it is not served"}});
        if (kept.volume != nullptr) opened->push_back(std::move(kept));
    }
    return opened;
}

}  // namespace sluice::cli
