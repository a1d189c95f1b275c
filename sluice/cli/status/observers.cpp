#include "sluice/cli/status/observers.hpp"

#include <fmt/core.h>

#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/metrics_address.hpp"
#include "sluice/cli/status/status_socket.hpp"
#include "sluice/cli/status/web/web_address.hpp"

namespace sluice::cli {

using smb::server::smb_server;

namespace {

// In the directory, under the number of the port; under another name if a server on another address
// has that.
[[nodiscard]] result<std::unique_ptr<status_service>> open_usual(smb_server& server,
                                                                 const server_sampler& samples) {
    if (const auto made = make_status_directory(); not made) return failure(made.error());
    const auto addresses = server.addresses();
    const std::uint16_t port = addresses.empty() ? std::uint16_t{0} : addresses.front().port();
    auto first = status_service::open(server, samples, status_socket_path(port));
    if (first or first.error() != std::errc::address_in_use) return first;
    return status_service::open(server, samples, second_status_socket_path(port));
}

}  // namespace

// Returns why a requested listener cannot be opened; empty if all are open.
std::string observers::open_http(smb_server& server, secret_random_source& random,
                                 const observer_options& wanted) {
    if (not wanted.metrics.empty()) {
        const auto where = metrics_address(wanted.metrics);
        ENSURE(where.has_value(), "checked when the options were read");
        auto metrics = metrics_service::open(server, *where);
        if (not metrics) return "--metrics: " + metrics.error().message();
        metrics_ = *std::move(metrics);
    }
    if (not wanted.web.empty()) {
        const auto where = web_address(wanted.web);
        ENSURE(where.has_value(), "checked when the options were read");
        auto checked = background_findings::start(wanted.host_checks, server.context().clock());
        if (not checked) return "--web: " + checked.error().message();
        host_findings_ = *std::move(checked);
        auto web = web_service::open(
            {.server = server, .samples = samples_, .random = random, .host = *host_findings_}, *where,
            wanted.web_token);
        if (not web) return "--web: " + web.error().message();
        web_ = *std::move(web);
    }
    return "";
}

void observers::start() {
    samples_.start();
    if (status_ != nullptr) status_->start();
    if (metrics_ != nullptr) metrics_->start();
    if (web_ != nullptr) web_->start();
}

std::expected<std::unique_ptr<observers>, std::string> observers::open(smb_server& server,
                                                                       secret_random_source& random,
                                                                       const observer_options& wanted) {
    std::unique_ptr<observers> made(new observers(server));
    if (std::string problem = made->open_http(server, random, wanted); not problem.empty())
        return std::unexpected(std::move(problem));
    const bool is_usual = wanted.status_socket.empty();
    auto status = is_usual ? open_usual(server, made->samples_)
                           : status_service::open(server, made->samples_, wanted.status_socket);
    if (status)
        made->status_ = *std::move(status);
    else if (not is_usual)
        return std::unexpected("--status-socket: " + status.error().message());
    else
        server.context().log().write(smb::server::event_severity::warning, "status socket unavailable",
                                     {{"path", status_directory()}, {"why", status.error().message()}});
    made->start();
    return made;
}

io::task<void> observers::stop() noexcept {
    if (status_ != nullptr) {
        status_->stop();
        io::task<void> ending = status_->done();
        co_await std::move(ending);
    }
    if (metrics_ != nullptr) {
        metrics_->stop();
        io::task<void> ending = metrics_->done();
        co_await std::move(ending);
    }
    if (web_ != nullptr) {
        web_->stop();
        io::task<void> ending = web_->done();
        co_await std::move(ending);
    }
    samples_.stop();
    io::task<void> ending = samples_.done();
    co_await std::move(ending);
}

}  // namespace sluice::cli
