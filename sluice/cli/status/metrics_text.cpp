#include "sluice/cli/status/metrics_text.hpp"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace sluice::cli {

using namespace smb::server;

namespace {

enum class metric_kind : unsigned char { counter, gauge };

// Writes metrics in order, each with its help text.
class metric_writer {
public:
    void family(std::string_view name, metric_kind kind, std::string_view help) {
        name_ = name;
        text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help,
                             kind == metric_kind::counter ? "counter" : "gauge");
    }
    void sample(std::uint64_t value) { text_ += fmt::format("{} {}\n", name_, value); }
    void sample(double value) { text_ += fmt::format("{} {:.3f}\n", name_, value); }
    void sample(std::string_view label, std::string_view is, std::uint64_t value) {
        text_ += fmt::format("{}{{{}=\"{}\"}} {}\n", name_, label, escaped(is), value);
    }
    void single(std::string_view name, metric_kind kind, std::string_view help, auto value) {
        family(name, kind, help);
        sample(value);
    }
    [[nodiscard]] std::string take() { return std::move(text_); }

private:
    [[nodiscard]] static std::string escaped(std::string_view value) {
        std::string text;
        for (const char c : value) {
            if (c == '\\' or c == '"') text += '\\';
            text += c == '\n' ? std::string_view("\\n") : std::string_view(&c, 1);
        }
        return text;
    }

    std::string name_;
    std::string text_;
};

void add_traffic(metric_writer& to, const traffic& done) {
    to.family("sluice_smb_requests_total", metric_kind::counter, "Requests answered, by command.");
    for (std::size_t i = 0; i != commands_count; ++i)
        to.sample("command", smb::wire::name_of(static_cast<smb::wire::command>(i)), done.requests[i]);
    to.single("sluice_smb_request_failures_total", metric_kind::counter, "Requests answered with an error.",
              done.failures);
    to.single("sluice_smb_read_bytes_total", metric_kind::counter, "Bytes of files sent in answers to READ.",
              done.read_bytes);
    to.single("sluice_smb_written_bytes_total", metric_kind::counter, "Bytes of files received by WRITE.",
              done.written_bytes);
}

void add_paths(metric_writer& to, const std::vector<path_use>& paths) {
    if (paths.empty()) return;
    to.family("sluice_smb_path_requests_total", metric_kind::counter, "Requests, by I/O path.");
    for (const path_use& one : paths)
        to.sample("path", one.name, one.requests);
    to.family("sluice_smb_path_bytes_total", metric_kind::counter, "Bytes, by I/O path.");
    for (const path_use& one : paths)
        to.sample("path", one.name, one.bytes);
}

void add_holdings(metric_writer& to, const server_snapshot& totals, const open_totals& opens) {
    constexpr metric_kind gauge = metric_kind::gauge;
    to.single("sluice_smb_connections", gauge, "Connections of clients.",
              std::uint64_t{totals.in_use.connections});
    to.single("sluice_smb_sessions", gauge, "Sessions.", std::uint64_t{totals.in_use.sessions});
    to.single("sluice_smb_opens", gauge, "Opens of files, directories and pipes.",
              std::uint64_t{totals.in_use.opens});
    to.single("sluice_smb_open_files", gauge, "Open files and directories.", std::uint64_t{totals.files});
    to.single("sluice_smb_byte_range_locks", gauge, "Byte-range locks held.", std::uint64_t{opens.locks});
    to.single("sluice_smb_leases", gauge, "Leases of clients on files.", std::uint64_t{totals.leases});
    to.single("sluice_smb_oplocks", gauge, "Opens with an oplock.", std::uint64_t{opens.oplocks});
    to.single("sluice_smb_opens_without_client", gauge,
              "Durable opens kept for a client that has lost its connection.",
              std::uint64_t{opens.without_client});
    to.family("sluice_smb_loop_connections", gauge, "Connections, by loop.");
    for (std::size_t i = 0; i != totals.loops.size(); ++i)
        to.sample("loop", std::to_string(i), totals.loops[i].connections);
    to.single("sluice_smb_denied_connections_total", metric_kind::counter,
              "Connections closed because their address is denied.", totals.denied_connections);
    to.single("sluice_smb_cross_loop_posts_total", metric_kind::counter,
              "Work items that one loop has posted to another.", totals.cross_loop_posts);
    to.single("sluice_smb_loop_slow_turns_total", metric_kind::counter,
              "Turns of event loops that took at least 100 ms.", totals.loop_slow_turns);
    to.single("sluice_smb_loop_stalls_total", metric_kind::counter,
              "Number of times that a turn of an event loop took over a second.", totals.loop_stalls);
}

void add_limits(metric_writer& to, const limits_in_use& fullest) {
    const std::vector<limit_row> rows = limit_rows(fullest);
    to.family("sluice_smb_limit", metric_kind::gauge, "Limits on what clients can make the server hold.");
    for (const limit_row& row : rows)
        if (row.in_use) to.sample("name", row.name, row.limit);
    to.family("sluice_smb_limit_in_use", metric_kind::gauge, "Highest current use of each limit.");
    for (const limit_row& row : rows)
        if (row.in_use) to.sample("name", row.name, *row.in_use);
    to.family("sluice_smb_limit_in_use_of_client", metric_kind::gauge,
              "Current use of each limit by the user or address with most.");
    for (const limit_row& row : rows)
        if (row.of_client) to.sample("name", row.name, *row.of_client);
    to.family("sluice_smb_limit_rejections_total", metric_kind::counter,
              "Requests, sessions or connections rejected or dropped at each limit.");
    for (const limit_row& row : rows)
        if (row.rejected) to.sample("name", row.name, *row.rejected);
}

[[nodiscard]] double seconds_of(const timeval& time) noexcept {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

process_use process_use_now() noexcept {
    process_use use;
    rusage times{};
    (void)::getrusage(RUSAGE_SELF, &times);
    use.cpu_seconds = seconds_of(times.ru_utime) + seconds_of(times.ru_stime);
    if (std::FILE* const file = std::fopen("/proc/self/statm", "re")) {
        unsigned long all = 0;
        unsigned long resident = 0;
        if (std::fscanf(file, "%lu %lu", &all, &resident) == 2)
            use.resident_bytes =
                std::uint64_t{resident} * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        (void)std::fclose(file);
    }
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unreadable)) {
        (void)entry;
        ++use.descriptors;
    }
    return use;
}

std::string metrics_text(const server_snapshot& totals, const open_totals& opens,
                         const process_use& process) {
    metric_writer to;
    to.family("sluice_build_info", metric_kind::gauge, "Always 1; the label has the version.");
    to.sample("version", SLUICE_VERSION, 1);
    to.single("sluice_smb_start_time_seconds", metric_kind::gauge,
              "Start time of the server, since the epoch.",
              std::chrono::duration<double>(totals.started_at.time_since_epoch()).count());
    add_traffic(to, totals.traffic);
    add_paths(to, totals.paths);
    add_holdings(to, totals, opens);
    limits_in_use fullest = totals.in_use;
    fullest.merge(opens.fullest);
    add_limits(to, fullest);
    to.single("process_cpu_seconds_total", metric_kind::counter, "CPU time, user and system.",
              process.cpu_seconds);
    to.single("process_resident_memory_bytes", metric_kind::gauge, "Memory in RAM.", process.resident_bytes);
    to.single("process_open_fds", metric_kind::gauge, "Open file descriptors.", process.descriptors);
    return to.take();
}

}  // namespace sluice::cli
