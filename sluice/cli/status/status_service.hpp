#pragma once

#include <memory>
#include <string>

#include "sluice/cli/status/json_writer.hpp"
#include "sluice/cli/status/open_totals.hpp"
#include "sluice/cli/status/server_sampler.hpp"
#include "sluice/discovery/http/request_listener.hpp"
#include "sluice/smb/server/server.hpp"

namespace sluice::cli {

/// Answers `sluice status` on a Unix socket, only to processes of the same account and of root.
///
/// Construct, start(); before the server is destroyed, stop(), and wait for done(). Thread safety:
/// the loop's thread.
class status_service {
public:
    /// Listens at `path`, replacing the socket of a server that died. The destructor removes the
    /// file. `samples` outlives it.
    /// Errors: EADDRINUSE if a running server uses it; ENAMETOOLONG; those of socket(2).
    [[nodiscard]] static result<std::unique_ptr<status_service>> open(smb::server::smb_server& server,
                                                                      const server_sampler& samples,
                                                                      const std::string& path) noexcept;
    ~status_service();
    status_service(const status_service&) = delete;
    status_service& operator=(const status_service&) = delete;

    void start() { connections_.start(); }
    void stop() noexcept { connections_.stop(); }
    [[nodiscard]] io::task<void> done() noexcept { return connections_.done(); }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    status_service(smb::server::smb_server& server, const server_sampler& samples,
                   io::listening_socket_handle listener, std::string path);

    [[nodiscard]] io::task<void> answer(io::socket_handle& socket) noexcept;
    [[nodiscard]] io::task<bool> write_sessions(io::socket_handle& socket, json_writer& to,
                                                const std::vector<std::uint64_t>& ids) noexcept;
    [[nodiscard]] io::task<bool> write_opens(io::socket_handle& socket, json_writer& to, open_totals& sum,
                                             const std::vector<std::uint64_t>& numbers, bool lists) noexcept;

    smb::server::smb_server& server_;
    const server_sampler& samples_;
    std::string path_;
    http::request_listener connections_;
};

}  // namespace sluice::cli
