#include "sluice/cli/status/observers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/cli/status/metrics_address.hpp"
#include "sluice/cli/status/status_socket.hpp"
#include "sluice/cli/status/web/web_address.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::cli {

using smb::server::event_severity;
using smb::server::smb_server;

namespace {

// The kernel may release the sockets of a server that was killed some time after its end.
constexpr unsigned quick_retries = 100;
constexpr std::chrono::milliseconds quick_retry_after{100};
constexpr std::chrono::seconds retry_after{5};

// In the directory, under the number of the port; under another name if a server on another address
// has that.
[[nodiscard]] result<std::unique_ptr<status_service>> open_usual(smb_server& server,
                                                                 const server_sampler& samples,
                                                                 const recent_refusals* refusals) {
    if (const auto made = make_status_directory(); not made) return failure(made.error());
    const auto addresses = server.addresses();
    const std::uint16_t port = addresses.empty() ? std::uint16_t{0} : addresses.front().port();
    auto first = status_service::open(server, samples, status_socket_path(port), refusals);
    if (first or first.error() != std::errc::address_in_use) return first;
    return status_service::open(server, samples, second_status_socket_path(port), refusals);
}

// Returns whether only a change of the configuration or of the rights can help. Another account
// cannot cause these errors; it can cause the others, so they must not end the server.
[[nodiscard]] bool is_permanent(const error& why) noexcept {
    using enum std::errc;
    constexpr std::array all{permission_denied,           no_such_file_or_directory, not_a_directory,
                             address_not_available,       filename_too_long,         read_only_file_system,
                             address_family_not_supported};
    return std::ranges::any_of(all, [&](std::errc each) { return why == each; });
}

}  // namespace

result<std::string> observers::open_status(const std::string& at) {
    auto opened = status_service::open(server_, samples_, at, refusals_);
    if (not opened) return failure(opened.error());
    status_ = *std::move(opened);
    return status_->path();
}

result<std::string> observers::open_metrics(const std::string& at) {
    const auto where = metrics_address(at);
    ENSURE(where.has_value(), "checked when the options were read");
    auto opened = metrics_service::open(server_, *where);
    if (not opened) return failure(opened.error());
    metrics_ = *std::move(opened);
    const auto bound = metrics_->address();
    return fmt::format("http://{}/metrics", bound ? bound->text() : where->text());
}

result<std::string> observers::open_web(const std::string& at) {
    const auto where = web_address(at);
    ENSURE(where.has_value(), "checked when the options were read");
    auto opened = web_service::open(
        {.server = server_, .samples = samples_, .host = *host_findings_, .logons = logons_.get()}, *where);
    if (not opened) return failure(opened.error());
    web_ = *std::move(opened);
    return web_->url();
}

// Returns the permanent error of a listener; empty if there is none.
std::string observers::open_all(const observer_options& wanted) {
    // The status socket is first, because its directory may be that of the socket of the page.
    const std::array all{
        wanted_listener{"--status-socket", wanted.status_socket, &observers::open_status,
                        &observers::start_status},
        wanted_listener{"--metrics", wanted.metrics, &observers::open_metrics, &observers::start_metrics},
        wanted_listener{"--web", wanted.web, &observers::open_web, &observers::start_web}};
    for (wanted_listener one : all) {
        if (one.at.empty()) continue;
        auto opened = (this->*one.open)(one.at);
        if (opened) {
            one.url = *std::move(opened);
        } else {
            one.problem = opened.error().message();
            if (is_permanent(opened.error())) return fmt::format("{}: {}", one.option, one.problem);
            server_.context().log().write(event_severity::error,
                                          "cannot listen for observers; trying again until it succeeds",
                                          {{"option", one.option}, {"why", one.problem}});
        }
        wanted_.push_back(std::move(one));
    }
    return "";
}

// Returns why the page cannot be served; empty if it can.
std::string observers::prepare_web(secret_random_source& random, const observer_options& wanted) {
    const clock_source& clock = server_.context().clock();
    auto checked = background_findings::start(wanted.host_checks, clock);
    if (not checked) return "--web: " + checked.error().message();
    host_findings_ = *std::move(checked);
    if (not wanted.web_token.empty())
        logons_ = std::make_unique<web_sessions>(wanted.web_token, clock, random);
    return "";
}

// SMB clients are served whether it succeeds or not.
io::task<void> observers::keep_opening(wanted_listener& one) noexcept {
    for (unsigned attempts = 0; not one.problem.empty(); ++attempts) {
        const deadline pause = attempts < quick_retries ? deadline(quick_retry_after) : deadline(retry_after);
        const auto slept = co_await io::co_sleep(server_.context().loop(), pause);
        if (not slept) co_return;
        auto opened = (this->*one.open)(one.at);
        if (not opened) continue;
        one.url = *std::move(opened);
        one.problem.clear();
        server_.context().log().write(event_severity::info, "listening for observers",
                                      {{"option", one.option}, {"address", one.url}});
    }
    (this->*one.start)();
}

std::string observers::text_of(std::string_view option) const {
    const auto one = std::ranges::find(wanted_, option, &wanted_listener::option);
    if (one == wanted_.end()) return "";
    return one->problem.empty() ? one->url : fmt::format("not available yet: {}", one->problem);
}

void observers::start() {
    samples_.start();
    const bool has_usual_status = status_ != nullptr and text_of("--status-socket").empty();
    if (has_usual_status) status_->start();
    for (wanted_listener& one : wanted_)
        retries_.spawn(keep_opening(one));
}

// The server runs without it, too.
void observers::open_usual_status() {
    auto opened = open_usual(server_, samples_, refusals_);
    if (opened)
        status_ = *std::move(opened);
    else
        server_.context().log().write(event_severity::warning, "status socket unavailable",
                                      {{"path", status_directory()}, {"why", opened.error().message()}});
}

std::expected<std::unique_ptr<observers>, std::string> observers::open(smb_server& server,
                                                                       secret_random_source& random,
                                                                       const observer_options& wanted) {
    std::unique_ptr<observers> made(new observers(server));
    made->refusals_ = wanted.refusals;
    if (wanted.status_socket.empty()) made->open_usual_status();
    std::string problem;
    if (not wanted.web.empty()) problem = made->prepare_web(random, wanted);
    if (problem.empty()) problem = made->open_all(wanted);
    if (not problem.empty()) return std::unexpected(std::move(problem));
    made->start();
    return made;
}

io::task<void> observers::stop() noexcept {
    retries_.cancel();
    co_await retries_.join();
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
