#pragma once

#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "sluice/cli/status/metrics_service.hpp"
#include "sluice/cli/status/status_service.hpp"

namespace sluice::cli {

/// How a server lets others look at it, as `sluice serve` was told.
struct observer_options {
    std::string status_socket;  // empty: in the account's runtime folder
    std::string metrics;        // [ADDRESS:]PORT; empty: no metrics
};

/// Where metrics are to be had: without an address on the loopback interface. Nothing if it is neither
/// ADDRESS:PORT nor a port.
[[nodiscard]] std::optional<io::socket_address> metrics_address(const std::string& text) noexcept;

/// Those who answer for a server that listens: on the status socket, and over HTTP if it is wanted.
/// Thread safety: the loop's thread.
class observers {
public:
    /// What was asked for and cannot be had is an error, as a sentence; the socket that nobody asked for may
    /// be missing, which is logged.
    [[nodiscard]] static std::expected<std::unique_ptr<observers>, std::string> open(
        smb::server::smb_server& server, const observer_options& wanted);
    observers(const observers&) = delete;
    observers& operator=(const observers&) = delete;

    /// Stops answering. Suspends.
    [[nodiscard]] io::task<void> stop() noexcept;

    /// Null if they are not there.
    [[nodiscard]] const status_service* status() const noexcept { return status_.get(); }
    [[nodiscard]] const metrics_service* metrics() const noexcept { return metrics_.get(); }

private:
    observers() noexcept = default;

    std::unique_ptr<status_service> status_;
    std::unique_ptr<metrics_service> metrics_;
};

}  // namespace sluice::cli
