#pragma once

#include <string>
#include <vector>

#include "sluice/cli/hardening/file_confinement.hpp"
#include "sluice/cli/serve/serve_options.hpp"

namespace sluice::cli {

/// Protects the host from an attacker who controls the process of `sluice serve`, by dropping all
/// access that a server of these shares does not need. The banner reports the active measures, and
/// why others are not active.
class server_hardening {
public:
    /// Call it once, before the process has a second thread or a ring, with the options as the file
    /// completes them. `configuration` is the path of that file, and `users` of the users file.
    /// Blocks: for the file system.
    void apply(const serve_options& options, const std::string& configuration, const std::string& users);

    [[nodiscard]] const std::vector<hardening_measure>& measures() const noexcept { return measures_; }

    /// Returns whether the server cannot use files outside of its own any more.
    [[nodiscard]] bool confines_files() const noexcept { return confines_files_; }

    /// Returns why a share cannot be added without a restart; empty if it can.
    [[nodiscard]] std::string why_not(const share_options& share, bool read_only) const;
    /// Returns why a directory of snapshots cannot be read without a restart; empty if it can.
    [[nodiscard]] std::string why_not_read(const std::string& directory) const;

private:
    file_confinement files_;
    std::vector<hardening_measure> measures_;
    bool confines_files_ = false;
};

/// Returns at most two lines for the banner: the active measures, and the inactive ones with the
/// reason.
[[nodiscard]] std::string hardening_text(const std::vector<hardening_measure>& measures);

}  // namespace sluice::cli
