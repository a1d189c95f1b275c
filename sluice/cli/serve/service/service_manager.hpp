#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::cli {

/// The variables by which a service manager, such as systemd, asks for reports of the server's
/// state: sd_notify(3), sd_watchdog_enabled(3). Empty: not set.
struct service_environment {
    std::string notify_socket{};
    std::string watchdog_usec{};
    std::string watchdog_pid{};
};

/// Reads these variables and removes them, so that no child process inherits them.
/// Thread safety: the main thread, before there are others.
[[nodiscard]] service_environment take_service_environment();

/// Reports the state of the server to the service manager, by datagrams to NOTIFY_SOCKET. Without
/// that variable, or if it cannot be used, nothing is sent.
///
/// No call waits for the manager. A report that does not fit into its queue is kept, and sent again
/// by the next keep_alive(), which the watchdog's thread calls often.
///
/// Invariants:
///   1. Reports are sent in the order of the calls.
///   2. After stopping(), none is sent that says otherwise.
///   3. At most reports_kept_max reports are kept; the oldest are dropped.
/// Thread safety: any thread. Allocates: the texts. Blocks: never.
class service_manager {
public:
    using clock = std::chrono::steady_clock;
    static constexpr std::size_t reports_kept_max = 16;

    /// Receives a sentence about a variable that cannot be used.
    using warning_function = void (*)(std::string_view);

    service_manager(const service_environment& environment, warning_function warn);
    service_manager(const service_manager&) = delete;
    service_manager& operator=(const service_manager&) = delete;

    /// Sets the sentence that the manager shows. It becomes one line of printable characters.
    void set_status(std::string_view text);
    /// The server accepts connections.
    void ready(std::string_view status);
    /// A reload has been requested. Its end is reported by reloaded(); a request in the meantime
    /// is another call of this.
    void reloading();
    /// No reload is in progress any more. No effect without reloading() before it.
    void reloaded();
    /// The server has begun to stop.
    void stopping();

    /// Sends the reports that were kept. Reports that the server is alive, if the manager wants it,
    /// and `stuck_loops` is 0: four times in the interval after which it ends the server.
    void keep_alive(clock::time_point now, std::size_t stuck_loops);

    /// Returns whether a manager receives reports.
    [[nodiscard]] bool is_present() const noexcept { return socket_.is_valid(); }

private:
    void connect(const std::string& name, warning_function warn);
    void watch(const service_environment& environment, warning_function warn);
    void report(std::string text);
    void flush();
    [[nodiscard]] std::string with_status(std::string_view state) const;

    io::socket_handle socket_;
    io::socket_address address_;
    std::mutex mutex_;  // guards what follows
    std::vector<std::string> kept_;
    std::string status_;
    bool is_reloading_ = false;
    bool is_stopping_ = false;
    std::optional<clock::duration> period_;  // of keep_alive reports; none: not wanted
    std::optional<clock::time_point> alive_reported_;
};

}  // namespace sluice::cli
