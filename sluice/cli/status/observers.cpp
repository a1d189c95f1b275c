#include "sluice/cli/status/observers.hpp"

#include <fmt/core.h>

#include <charconv>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/status_socket.hpp"

namespace sluice::cli {

using smb::server::smb_server;

namespace {

// In the directory, under the number of the port; under another name if a server on another address
// has that.
[[nodiscard]] result<std::unique_ptr<status_service>> open_usual(smb_server& server,
                                                                 const recent_refusals* refusals) {
    if (const auto made = make_status_directory(); not made) return failure(made.error());
    const auto addresses = server.addresses();
    const std::uint16_t port = addresses.empty() ? std::uint16_t{0} : addresses.front().port();
    auto first = status_service::open(server, status_socket_path(port), refusals);
    if (first or first.error() != std::errc::address_in_use) return first;
    return status_service::open(server, second_status_socket_path(port), refusals);
}

}  // namespace

std::optional<io::socket_address> metrics_address(const std::string& text) noexcept {
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, port);
    if (problem == std::errc{} and stopped == end) return io::socket_address::loopback_v4(port);
    const auto address = io::socket_address::parse(text);
    const bool is_ip = address and address->family() != io::address_family::local;
    return is_ip ? std::optional(*address) : std::nullopt;
}

std::expected<std::unique_ptr<observers>, std::string> observers::open(smb_server& server,
                                                                       const observer_options& wanted) {
    std::unique_ptr<observers> made(new observers);
    if (not wanted.metrics.empty()) {
        const auto where = metrics_address(wanted.metrics);
        ENSURE(where.has_value(), "checked when the options were read");
        auto metrics = metrics_service::open(server, *where);
        if (not metrics) return std::unexpected("--metrics: " + metrics.error().message());
        made->metrics_ = *std::move(metrics);
    }
    const bool is_usual = wanted.status_socket.empty();
    auto status = is_usual ? open_usual(server, wanted.refusals)
                           : status_service::open(server, wanted.status_socket, wanted.refusals);
    if (status)
        made->status_ = *std::move(status);
    else if (not is_usual)
        return std::unexpected("--status-socket: " + status.error().message());
    else
        server.context().log().write(smb::server::event_severity::warning, "status socket unavailable",
                                     {{"path", status_directory()}, {"why", status.error().message()}});
    if (made->status_ != nullptr) made->status_->start();
    if (made->metrics_ != nullptr) made->metrics_->start();
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
}

}  // namespace sluice::cli
