#pragma once

#include <memory>
#include <string>

#include "sluice/discovery/http/request_listener.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::cli {

/// Answers GET /metrics over HTTP, for Prometheus. There is no authentication and no encryption: it
/// is for the loopback interface, or a network that may know the load of the server. Names of files
/// and users are not included.
///
///
/// Construct, start(); before the server is destroyed, stop(), and wait for done(). Thread safety:
/// the loop's thread.
class metrics_service {
public:
    /// Errors: those of listening_socket_handle::listen.
    [[nodiscard]] static result<std::unique_ptr<metrics_service>> open(smb::server::smb_server& server,
                                                                       const io::socket_address& at) noexcept;
    metrics_service(const metrics_service&) = delete;
    metrics_service& operator=(const metrics_service&) = delete;

    void start() { connections_.start(); }
    void stop() noexcept { connections_.stop(); }
    [[nodiscard]] io::task<void> done() noexcept { return connections_.done(); }
    /// Returns the address, with the port that the system chose if it was 0.
    [[nodiscard]] result<io::socket_address> address() const noexcept {
        return connections_.listener().local_address();
    }

private:
    metrics_service(smb::server::smb_server& server, io::listening_socket_handle listener);

    [[nodiscard]] io::task<void> answer(io::socket_handle& socket) noexcept;
    [[nodiscard]] io::task<std::string> metrics() noexcept;

    smb::server::smb_server& server_;
    http::request_listener connections_;
};

}  // namespace sluice::cli
