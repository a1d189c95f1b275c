#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cli/status/background_findings.hpp"
#include "sluice/cli/status/findings.hpp"
#include "sluice/cli/status/metrics_service.hpp"
#include "sluice/cli/status/server_sampler.hpp"
#include "sluice/cli/status/status_service.hpp"
#include "sluice/cli/status/web/web_service.hpp"

namespace sluice::cli {

/// How a server can be observed: options of `sluice serve`.
struct observer_options {
    std::string status_socket;  // empty: in the runtime directory of the account
    std::string metrics;        // [ADDRESS:]PORT; empty: no metrics
    std::string web;            // [ADDRESS:]PORT or unix:PATH; empty: no page
    std::string web_token;      // empty: the page changes nothing
    /// Finds facts of this host for the page; called on a thread of its own, never on a loop.
    std::function<std::vector<finding>()> host_checks;
};

/// The listeners for observers of a running server: the status socket, and metrics and a page over
/// HTTP if requested.
/// Thread safety: the loop's thread.
class observers {
public:
    /// Opens the listeners. A requested listener that cannot be opened is an error, as a sentence;
    /// a failure of the default status socket is only logged. `random` outlives it.
    [[nodiscard]] static std::expected<std::unique_ptr<observers>, std::string> open(
        smb::server::smb_server& server, secret_random_source& random, const observer_options& wanted);
    observers(const observers&) = delete;
    observers& operator=(const observers&) = delete;

    /// Stops the listeners. Suspends.
    [[nodiscard]] io::task<void> stop() noexcept;

    /// Returns null if there is no status socket.
    [[nodiscard]] const status_service* status() const noexcept { return status_.get(); }
    [[nodiscard]] const metrics_service* metrics() const noexcept { return metrics_.get(); }
    [[nodiscard]] const web_service* web() const noexcept { return web_.get(); }

private:
    explicit observers(smb::server::smb_server& server) : samples_(server) {}

    [[nodiscard]] std::string open_http(smb::server::smb_server& server, secret_random_source& random,
                                        const observer_options& wanted);
    void start();

    server_sampler samples_;
    std::unique_ptr<background_findings> host_findings_;  // with a page
    std::unique_ptr<status_service> status_;
    std::unique_ptr<metrics_service> metrics_;
    std::unique_ptr<web_service> web_;
};

}  // namespace sluice::cli
