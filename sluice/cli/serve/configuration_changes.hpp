#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sluice/cli/serve/serve_options.hpp"
#include "sluice/smb/server/report/event_log.hpp"

namespace sluice::cli {

/// A setting that has another value than before, as TOML and without secrets. Empty: not set.
struct setting_change {
    std::string key;
    std::string before;
    std::string after;
};

/// The settings of a share that have changed.
struct share_change {
    std::string share;
    std::vector<setting_change> settings;
};

/// The differences of two configurations.
struct configuration_changes {
    std::vector<std::string> added;  ///< names of shares
    std::vector<std::string> removed;
    std::vector<share_change> changed;
    std::vector<setting_change> applied;        ///< settings of the server
    std::vector<setting_change> needs_restart;  ///< the same, which a reload does not apply

    [[nodiscard]] bool is_empty() const noexcept;
};

/// Returns the differences of two configurations that complete_shares() has completed. Those that
/// need a restart are relative to `started`, the others to `before`. Allocates: the result. Pure.
[[nodiscard]] configuration_changes changes_of(const serve_options& started, const serve_options& before,
                                               const serve_options& after);

/// Returns "1 share added, 2 changed; restart needed for port", or "none". Allocates: the text.
[[nodiscard]] std::string summary_of(const configuration_changes& changes);

/// The configuration that the server runs with, to report the changes of a reload. Loop-owned.
class running_configuration {
public:
    explicit running_configuration(serve_options started) : started_(started), now_(std::move(started)) {}

    /// Logs the changes that a reload has made, and returns their summary. `keeps_users`: the
    /// setting `user` was not applied. Allocates: the lines, of which there are at most 200.
    [[nodiscard]] std::string replace(const serve_options& fresh, bool keeps_users,
                                      smb::server::event_log& log);

private:
    serve_options started_;
    serve_options now_;
};

}  // namespace sluice::cli
