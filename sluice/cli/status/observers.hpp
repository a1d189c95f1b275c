#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/cli/status/background_findings.hpp"
#include "sluice/cli/status/findings.hpp"
#include "sluice/cli/status/metrics_service.hpp"
#include "sluice/cli/status/server_sampler.hpp"
#include "sluice/cli/status/status_service.hpp"
#include "sluice/cli/status/web/web_service.hpp"
#include "sluice/cli/status/web/web_sessions.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::cli {

/// How a server can be observed: options of `sluice serve`.
struct observer_options {
    std::string status_socket;                  // empty: in the runtime directory of the account
    std::string metrics;                        // [ADDRESS:]PORT; empty: no metrics
    std::string web;                            // [ADDRESS:]PORT or unix:PATH; empty: no page
    std::string_view web_token;                 // empty: the page changes nothing; not kept
    const recent_refusals* refusals = nullptr;  // outlives the observers; null: not reported
    /// Finds facts of this host for the page; called on a thread of its own, never on a loop.
    std::function<std::vector<finding>()> host_checks;
};

/// The listeners for observers of a running server: the status socket, and metrics and a page over
/// HTTP if requested.
/// Thread safety: the loop's thread.
class observers {
public:
    /// Opens the listeners. Another program may have the address of one, perhaps to prevent the
    /// service, or a server that was killed: then the server logs that, and tries again until it
    /// stops. A failure that only another configuration or other rights can end is an error, as a
    /// sentence; that of the default status socket is only logged. `random` outlives it.
    [[nodiscard]] static std::expected<std::unique_ptr<observers>, std::string> open(
        smb::server::smb_server& server, secret_random_source& random, const observer_options& wanted);
    observers(const observers&) = delete;
    observers& operator=(const observers&) = delete;

    /// Stops the listeners and closes them, so that a successor can use their addresses. Suspends.
    [[nodiscard]] io::task<void> stop() noexcept;

    /// Return the URLs of the metrics and of the page; empty if they were not requested. If they
    /// are not available yet, the reason.
    [[nodiscard]] std::string metrics_text() const { return text_of("--metrics"); }
    [[nodiscard]] std::string web_text() const { return text_of("--web"); }

private:
    // A listener that was requested.
    struct wanted_listener {
        std::string_view option;
        std::string at;
        result<std::string> (observers::*open)(const std::string& at);  // returns its URL or path
        void (observers::*start)();
        std::string url{};
        std::string problem{};  // empty: it is open
    };

    explicit observers(smb::server::smb_server& server)
        : server_(server), samples_(server), retries_(server.context().loop()) {}

    void open_usual_status();
    [[nodiscard]] std::string prepare_web(secret_random_source& random, const observer_options& wanted);
    [[nodiscard]] std::string open_all(const observer_options& wanted);
    [[nodiscard]] result<std::string> open_status(const std::string& at);
    [[nodiscard]] result<std::string> open_metrics(const std::string& at);
    [[nodiscard]] result<std::string> open_web(const std::string& at);
    void start_status() { status_->start(); }
    void start_metrics() { metrics_->start(); }
    void start_web() { web_->start(); }
    [[nodiscard]] io::task<void> keep_opening(wanted_listener& one) noexcept;
    [[nodiscard]] std::string text_of(std::string_view option) const;
    void start();

    smb::server::smb_server& server_;
    const recent_refusals* refusals_ = nullptr;
    server_sampler samples_;
    std::vector<wanted_listener> wanted_;
    std::unique_ptr<web_sessions> logons_;                // with a token
    std::unique_ptr<background_findings> host_findings_;  // with a page
    std::unique_ptr<status_service> status_;
    std::unique_ptr<metrics_service> metrics_;
    std::unique_ptr<web_service> web_;
    io::task_group retries_;
};

}  // namespace sluice::cli
