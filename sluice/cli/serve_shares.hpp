#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sluice/cli/fat/image_share.hpp"
#include "sluice/cli/hardening/hardening.hpp"
#include "sluice/cli/serve_options.hpp"
#include "sluice/cli/share_domains.hpp"
#include "sluice/io/loop/io_multiplexer.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::cli {

/// The objects that the shares of `sluice serve` are opened with. All outlive the shares.
struct share_sources {
    io::io_multiplexer& loop;  // the first one
    served_images& images;
    share_domains& domains;
    const server_hardening& hardening;
};

/// Either all shares, or the reason why one of them cannot be opened.
using opened_shares = std::expected<std::vector<smb::server::share_configuration>, std::string>;

/// Opens all shares of the options. Blocks: for their file systems.
[[nodiscard]] opened_shares open_shares(const serve_options& options, const share_sources& from);
/// Opens those shares again whose paths are not in `silent`. The others stay as the server has
/// them, and those that it does not have are not served; the log names both. Blocks: for the file
/// systems that answer.
[[nodiscard]] opened_shares reopen_shares(const serve_options& options,
                                          const std::vector<std::string>& silent,
                                          const smb::server::smb_server& server, const share_sources& from);

}  // namespace sluice::cli
