#include "sluice/cli/serve/service/service_manager.hpp"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "sluice/cli/serve/service/environment_value.hpp"

namespace sluice::cli {

namespace {

// sun_path, without the terminator of a path.
constexpr std::size_t socket_name_bytes_max = 107;
constexpr std::size_t status_bytes_max = 512;
constexpr std::chrono::microseconds interval_max = std::chrono::hours(24 * 365);

[[nodiscard]] std::string one_line(std::string_view text) {
    std::string line(text.substr(0, status_bytes_max));
    for (char& c : line)
        if (static_cast<unsigned char>(c) < 0x20 or c == 0x7f) c = '?';
    return line;
}

constexpr const char* unreported = "the service manager is not informed about the state of the server";

}  // namespace

service_environment take_service_environment() {
    return {.notify_socket = take_variable("NOTIFY_SOCKET"),
            .watchdog_usec = take_variable("WATCHDOG_USEC"),
            .watchdog_pid = take_variable("WATCHDOG_PID")};
}

service_manager::service_manager(const service_environment& environment, warning_function warn) {
    if (environment.notify_socket.empty()) return;
    connect(environment.notify_socket, warn);
    if (is_present()) watch(environment, warn);
}

void service_manager::connect(const std::string& name, warning_function warn) {
    const bool is_known = name.front() == '/' or name.front() == '@';
    if (not is_known or name.size() < 2 or name.size() > socket_name_bytes_max)
        return warn(
            fmt::format("invalid value {} for NOTIFY_SOCKET: use an absolute path, or a name that "
                        "begins with '@', of at most {} bytes; {}",
                        shown_value(name), socket_name_bytes_max, unreported));
    std::string local = name;
    if (local.front() == '@') local.front() = '\0';
    const auto address = io::socket_address::local(local);
    if (not address) return warn(fmt::format("NOTIFY_SOCKET: {}; {}", address.error().message(), unreported));
    address_ = *address;
    auto made = io::socket_handle::create(io::address_family::local, io::socket_type::datagram);
    if (not made) return warn(fmt::format("NOTIFY_SOCKET: {}; {}", made.error().message(), unreported));
    socket_ = *std::move(made);
    if (::connect(socket_.descriptor(), static_cast<const sockaddr*>(address_.data()), address_.size()) == 0)
        return;
    warn(fmt::format("NOTIFY_SOCKET: {}: {}; {}", name, error{errno, "connect"}.reason(), unreported));
    socket_ = {};
}

// The variables are inherited by children of the process that they are meant for.
void service_manager::watch(const service_environment& environment, warning_function warn) {
    if (environment.watchdog_usec.empty()) return;
    if (not environment.watchdog_pid.empty()) {
        const auto pid = number_of(environment.watchdog_pid, std::numeric_limits<std::int32_t>::max());
        if (not pid)
            return warn(
                fmt::format("invalid value {} for WATCHDOG_PID: use the number of a process; the "
                            "watchdog of the service manager is not served",
                            shown_value(environment.watchdog_pid)));
        if (*pid != static_cast<std::uint64_t>(::getpid())) return;
    }
    const auto interval =
        number_of(environment.watchdog_usec, static_cast<std::uint64_t>(interval_max.count()));
    if (not interval or *interval == 0)
        return warn(
            fmt::format("invalid value {} for WATCHDOG_USEC: use 1 to {} microseconds; the "
                        "watchdog of the service manager is not served",
                        shown_value(environment.watchdog_usec), interval_max.count()));
    period_ = std::chrono::microseconds(*interval) / 4;
}

void service_manager::set_status(std::string_view text) {
    const std::lock_guard held(mutex_);
    status_ = one_line(text);
    if (not is_reloading_ and not is_stopping_) report(with_status(""));
}

void service_manager::ready(std::string_view status) {
    const std::lock_guard held(mutex_);
    status_ = one_line(status);
    if (not is_stopping_) report(with_status("READY=1\n"));
}

void service_manager::reloading() {
    const std::lock_guard held(mutex_);
    if (is_stopping_) return;
    is_reloading_ = true;
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(clock::now().time_since_epoch());
    report(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reloads its configuration", now.count()));
}

void service_manager::reloaded() {
    const std::lock_guard held(mutex_);
    if (not is_reloading_ or is_stopping_) return;
    is_reloading_ = false;
    report(with_status("READY=1\n"));
}

void service_manager::stopping() {
    const std::lock_guard held(mutex_);
    if (is_stopping_) return;
    is_stopping_ = true;
    report("STOPPING=1\nSTATUS=stops: clients are disconnected");
}

void service_manager::keep_alive(clock::time_point now, std::size_t stuck_loops) {
    const std::lock_guard held(mutex_);
    flush();
    if (not period_ or stuck_loops != 0 or not kept_.empty()) return;
    if (alive_reported_ and now - *alive_reported_ < *period_) return;
    alive_reported_ = now;
    report("WATCHDOG=1");
}

std::string service_manager::with_status(std::string_view state) const {
    return fmt::format("{}STATUS={}", state, status_);
}

void service_manager::report(std::string text) {
    if (not is_present()) return;
    if (kept_.size() == reports_kept_max) kept_.erase(kept_.begin());
    kept_.push_back(std::move(text));
    flush();
}

// A manager that was executed again may have another socket of the same name.
void service_manager::flush() {
    const auto send_first = [this] {
        constexpr int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
        return ::send(socket_.descriptor(), kept_.front().data(), kept_.front().size(), flags) >= 0;
    };
    while (not kept_.empty()) {
        bool is_sent = send_first();
        if (not is_sent and (errno == ECONNREFUSED or errno == ENOTCONN or errno == ECONNRESET)) {
            const auto* const to = static_cast<const sockaddr*>(address_.data());
            is_sent = ::connect(socket_.descriptor(), to, address_.size()) == 0 and send_first();
        }
        if (not is_sent) return;
        kept_.erase(kept_.begin());
    }
}

}  // namespace sluice::cli
