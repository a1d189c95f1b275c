#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "sluice/cli/status/metrics_service.hpp"
#include "sluice/cli/status/status_service.hpp"

namespace sluice::cli {

/// How a server can be observed: options of `sluice serve`.
struct observer_options {
    std::string status_socket;                  // empty: in the runtime directory of the account
    std::string metrics;                        // [ADDRESS:]PORT; empty: no metrics
    const recent_refusals* refusals = nullptr;  // outlives the observers; null: not reported
};

/// Returns the address for metrics; without an address in the text, it is on the loopback
/// interface. Returns std::nullopt if the text is neither ADDRESS:PORT nor a port.
[[nodiscard]] std::optional<io::socket_address> metrics_address(const std::string& text) noexcept;

/// The listeners for observers of a running server: the status socket, and HTTP if requested.
/// Thread safety: the loop's thread.
class observers {
public:
    /// Opens the listeners. A requested listener that cannot be opened is an error, as a sentence;
    /// a failure of the default status socket is only logged.
    [[nodiscard]] static std::expected<std::unique_ptr<observers>, std::string> open(
        smb::server::smb_server& server, const observer_options& wanted);
    observers(const observers&) = delete;
    observers& operator=(const observers&) = delete;

    /// Stops the listeners. Suspends.
    [[nodiscard]] io::task<void> stop() noexcept;

    /// Returns null if there is no status socket.
    [[nodiscard]] const status_service* status() const noexcept { return status_.get(); }
    [[nodiscard]] const metrics_service* metrics() const noexcept { return metrics_.get(); }

private:
    observers() noexcept = default;

    std::unique_ptr<status_service> status_;
    std::unique_ptr<metrics_service> metrics_;
};

}  // namespace sluice::cli
