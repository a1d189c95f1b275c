// sluice bench smb: puts load on an SMB server, so that the server can be measured.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "sluice/base/json_string.hpp"
#include "sluice/cli/commands.hpp"
#include "sluice/cli/smb/load.hpp"
#include "sluice/cli/smb/remote.hpp"
#include "sluice/cli/smb/server_cpu.hpp"
#include "sluice/io/name/name_resolution.hpp"

namespace sluice::cli {
namespace {

const std::map<std::string, load_kind> kinds{{"read", load_kind::read},
                                             {"write", load_kind::write},
                                             {"random-read", load_kind::random_read},
                                             {"random-write", load_kind::random_write},
                                             {"open", load_kind::open},
                                             {"create", load_kind::create},
                                             {"list", load_kind::list},
                                             {"put", load_kind::put},
                                             {"get", load_kind::get},
                                             {"delete", load_kind::remove},
                                             {"log-on", load_kind::log_on},
                                             {"echo", load_kind::echo}};

struct bench_smb_arguments {
    std::string url;
    std::string workload = "read";
    remote_options remote;
    load_options load{};
    std::uint64_t size_bytes = 0;  // 0: the default of the workload
    double seconds = 5;
    std::vector<pid_t> server_processes;
    std::string subject = "server";
    bool json = false;
    bool keeps_files = false;
    bool holds = false;
};

[[nodiscard]] std::uint32_t usual_size(load_kind kind) noexcept {
    return kind == load_kind::read or kind == load_kind::write ? 1U << 20 : 4096;
}

// Returns the latency in microseconds that `fraction` of the operations did not exceed.
[[nodiscard]] double percentile_us(std::vector<std::uint32_t>& latencies, double fraction) {
    if (latencies.empty()) return 0;
    const std::size_t last = latencies.size() - 1;
    const auto rank = static_cast<std::size_t>(fraction * static_cast<double>(last));
    std::nth_element(latencies.begin(), latencies.begin() + static_cast<std::ptrdiff_t>(rank),
                     latencies.end());
    return static_cast<double>(latencies[rank]) * 0.256;
}

struct measured {
    load_outcome done;
    double server_cpu_s = 0;
    double busiest_thread_s = 0;  // a thread of the server
};

[[nodiscard]] double most_since(const std::map<pid_t, double>& before, const std::map<pid_t, double>& now) {
    double most = 0;
    for (const auto& [thread, seconds] : now) {
        const auto then = before.find(thread);
        most = std::max(most, seconds - (then == before.end() ? 0 : then->second));
    }
    return most;
}

void print_json(const bench_smb_arguments& given, const std::string& protection, measured& seen) {
    const load_outcome& done = seen.done;
    const double rate = static_cast<double>(done.operations) / done.seconds;
    std::string row =
        fmt::format("{{\"bench\":\"smb\",\"workload\":\"{0}_{1}_{2}_{3}x{4}\",\"subject\":", given.workload,
                    given.load.size_bytes, protection, given.load.connections, given.load.channels);
    append_json_string(row, given.subject);
    row += fmt::format(
        ",\"metric\":\"rate\",\"unit\":\"1/s\",\"better\":\"higher\",\"median\":{0:.6g},\"min\":{0:.6g},"
        "\"max\":{0:.6g},\"n\":1,\"operations\":{1},\"bytes\":{2},\"seconds\":{3:.6g},\"depth\":{4}",
        rate, done.operations, done.bytes, done.seconds, given.load.depth);
    for (const auto& [name, fraction] :
         {std::pair("p50_us", 0.5), std::pair("p90_us", 0.9), std::pair("p99_us", 0.99),
          std::pair("p999_us", 0.999), std::pair("max_us", 1.0)})
        row += fmt::format(",\"{}\":{:.6g}", name, percentile_us(seen.done.latencies_ns_by_256, fraction));
    if (done.bytes != 0)
        row +=
            fmt::format(",\"gigabytes_per_s\":{:.6g}", static_cast<double>(done.bytes) / 1e9 / done.seconds);
    if (not given.server_processes.empty()) {
        row += fmt::format(",\"server_cpu_s\":{:.6g},\"server_cpu_us_per_operation\":{:.6g}",
                           seen.server_cpu_s, seen.server_cpu_s * 1e6 / static_cast<double>(done.operations));
        row += fmt::format(",\"server_busiest_thread_s\":{:.6g}", seen.busiest_thread_s);
        if (done.bytes != 0)
            row += fmt::format(",\"server_cpu_s_per_gb\":{:.6g}",
                               seen.server_cpu_s * 1e9 / static_cast<double>(done.bytes));
    }
    fmt::print("{}}}\n", row);
}

void print_text(const bench_smb_arguments& given, const std::string& protection, measured& seen) {
    const load_outcome& done = seen.done;
    fmt::print("{}, {} bytes, {}, {} x {} connections, {} requests in flight on each\n", given.workload,
               given.load.size_bytes, protection, given.load.connections, given.load.channels,
               given.load.depth);
    fmt::print("{:.0f} operations per second", static_cast<double>(done.operations) / done.seconds);
    if (done.bytes != 0) fmt::print(", {:.3f} GB/s", static_cast<double>(done.bytes) / 1e9 / done.seconds);
    fmt::print(" ({} in {:.2f} s)\n", done.operations, done.seconds);
    auto& latencies = seen.done.latencies_ns_by_256;
    fmt::print("latency in µs: 50% {:.0f}, 90% {:.0f}, 99% {:.0f}, maximum {:.0f}\n",
               percentile_us(latencies, 0.5), percentile_us(latencies, 0.9), percentile_us(latencies, 0.99),
               percentile_us(latencies, 1.0));
    if (given.server_processes.empty()) return;
    fmt::print("server: {:.2f} s of CPU time, {:.2f} µs per operation", seen.server_cpu_s,
               seen.server_cpu_s * 1e6 / static_cast<double>(done.operations));
    if (done.bytes != 0)
        fmt::print(", {:.3f} s per GB", seen.server_cpu_s * 1e9 / static_cast<double>(done.bytes));
    fmt::print("\n");
}

// For programs that start several generators, whose loads have to begin together: their
// preparations take differently long.
void wait_for_start() {
    fmt::print(stderr, "ready\n");
    std::fflush(stderr);
    std::array<char, 64> unused{};
    ssize_t got = 0;
    do
        got = ::read(STDIN_FILENO, unused.data(), unused.size());
    while (got > 0 or (got < 0 and errno == EINTR));
}

void run_bench(bench_smb_arguments given) {
    given.load.kind = kinds.at(given.workload);
    given.load.channels = given.remote.channels;
    given.load.size_bytes =
        given.size_bytes != 0 ? static_cast<std::uint32_t>(given.size_bytes) : usual_size(given.load.kind);
    given.load.duration = std::chrono::milliseconds(static_cast<std::int64_t>(given.seconds * 1000));
    remote_share share(given.url, given.remote);
    given.load.directory = joined_path(share.url().path, "sluice-bench.tmp");
    auto addresses = io::resolve(share.address(), share.url().port);
    if (not addresses) share.fail("", resolution_problem(share.address(), addresses.error()));
    smb::client::connection& first = share.tree().of().first();
    if (given.load.size_bytes > std::min(first.read_bytes_max(), first.write_bytes_max()))
        share.fail("", fmt::format("--size {} exceeds the server's limit of {} bytes per request",
                                   given.load.size_bytes,
                                   std::min(first.read_bytes_max(), first.write_bytes_max())));
    load_generator load(share.loop(),
                        {.first = &share.tree(),
                         .addresses = std::move(*addresses),
                         .who = share.credentials(given.remote),
                         .share = share.url().share},
                        given.load);
    const std::string cannot = share.run(load.prepare());
    measured seen;
    if (cannot.empty()) {
        if (given.holds) wait_for_start();
        const auto threads_before = cpu_seconds_by_thread(given.server_processes);
        const double before = cpu_seconds_of(given.server_processes);
        seen.done = share.run(load.run());
        seen.server_cpu_s = cpu_seconds_of(given.server_processes) - before;
        seen.busiest_thread_s = most_since(threads_before, cpu_seconds_by_thread(given.server_processes));
    }
    share.run(load.clean_up(given.keeps_files));
    const std::string& why = cannot.empty() ? seen.done.failure : cannot;
    if (not why.empty()) share.fail("", why);
    if (seen.done.operations == 0)
        share.fail("", "no operation was completed in --seconds; use a longer time");
    const std::string protection = share.encrypts(given.remote) ? "encrypted"
                                   : given.remote.is_unsigned   ? "unsigned"
                                                                : "signed";
    given.json ? print_json(given, protection, seen) : print_text(given, protection, seen);
}

}  // namespace

void add_bench_smb(command_syntax bench) {
    const command_syntax command =
        bench.add_subcommand("smb", "measure an SMB server under load")
            .example("sluice bench smb --server-pid $(pidof smbd) smb://alice@localhost/share");
    const auto given = std::make_shared<bench_smb_arguments>();
    std::vector<std::string> names;
    for (const auto& [name, kind] : kinds)
        names.push_back(name);
    command.add_option("URL", given->url, "smb://USER@HOST[:PORT]/SHARE[/DIRECTORY]").required();
    command.add_option("--workload", given->workload, "operations to measure; see sluice-bench(1)")
        .one_of(names)
        .shows_default()
        .value_name("NAME")
        .group("Workload");
    command.add_option("--connections", given->load.connections, "sessions, each on its own connection")
        .between(1, 1024)
        .shows_default()
        .group("Workload");
    command.add_option("--idle", given->load.idle_connections, "additional idle sessions")
        .between(0, 10'000)
        .shows_default()
        .group("Workload");
    command.add_option("--depth", given->load.depth, "requests in flight per connection")
        .between(1, 512)
        .shows_default()
        .group("Workload");
    command
        .add_option("--size", given->size_bytes,
                    "bytes per transfer or small file [default: 1M for read and write, otherwise 4K]")
        .size_between(1, 8U << 20)
        .value_name("BYTES")
        .group("Workload");
    command.add_option("--file-size", given->load.file_bytes, "size of the large file of each session")
        .size_between(1, std::uint64_t{1} << 46)
        .value_name("BYTES")
        .group("Workload");
    command.add_option("--files", given->load.files, "small files per session")
        .between(1, 1'000'000)
        .shows_default()
        .group("Workload");
    command.add_option("--seconds", given->seconds, "duration")
        .between(0.01, 86'400.0)
        .shows_default()
        .value_name("SECONDS")
        .group("Workload");
    command
        .add_option("--server-pid", given->server_processes,
                    "report the CPU time of this local server process and its children (repeatable)")
        .one_value_each_time()
        .value_name("PID")
        .group("Measurement");
    command.add_option("--subject", given->subject, "name of the server in JSON output")
        .shows_default()
        .value_name("NAME")
        .group("Measurement");
    command
        .add_flag("--discard", given->load.discards,
                  "discard data without copying or verifying it; no effect on encrypted data")
        .group("Measurement");
    command.add_flag("--spin", given->load.spins, "poll instead of sleeping; uses one CPU")
        .group("Measurement");
    command
        .add_flag("--hold", given->holds,
                  "report 'ready' on standard error when the files exist, and begin when standard input ends")
        .group("Measurement");
    command.add_flag("--keep", given->keeps_files, "keep the files for the next run").group("Workload");
    command.add_flag("--json", given->json, "print a JSON object").group("Measurement");
    add_remote_options(command, given->remote);
    command.on_call([given] { run_bench(*given); });
}

}  // namespace sluice::cli
