// sluice bench fsmutex: tables of the throughput of fsmutex::shared_fs_mutex. N processes lock and
// unlock M entities, the same ones or separate ones, with our algorithms, with the usual
// alternatives, and with the lower bounds.

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/lock_benchmark/benchmark_subjects.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/io/path/volume_status.hpp"

namespace sluice::cli {
namespace {

using lock_benchmark::benchmark_subject;
using lock_benchmark::workload;

struct fsmutex_arguments {
    std::string directory;
    std::vector<unsigned> waiters{1, 2, 4, 8};
    std::vector<unsigned> entities{1, 2, 4, 8};
    std::string which = "both";
    std::vector<std::string> only;
    unsigned milliseconds = 100;
    unsigned repeats = 3;
    bool json = false;
};

// The results of one subject in one workload, over the repeats.
struct measured {
    std::vector<double> per_second;
    std::vector<double> cpu_ns;
    std::vector<double> slowest_to_fastest;
};
// Results by the numbers of the workload and the subject, each in its order.
using results = std::map<std::pair<std::size_t, std::size_t>, measured>;

volatile std::sig_atomic_t is_interrupted = 0;

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    const std::size_t half = of.size() / 2;
    return of.size() % 2 != 0 ? of[half] : (of[half - 1] + of[half]) / 2;
}

std::vector<workload> workloads_of(const fsmutex_arguments& arguments) {
    std::vector<workload> all;
    for (const bool is_disjoint : {false, true}) {
        if (arguments.which == (is_disjoint ? "same" : "disjoint")) continue;
        for (const unsigned processes : arguments.waiters)
            for (const unsigned entities : arguments.entities)
                // One process has all entities to choose from: both workloads are the same.
                if (processes != 1 or not is_disjoint or arguments.which == "disjoint")
                    all.push_back({.processes = processes, .entities = entities, .is_disjoint = is_disjoint});
    }
    return all;
}

std::vector<benchmark_subject> chosen(const fsmutex_arguments& arguments) {
    std::vector<benchmark_subject> taking_part;
    for (const benchmark_subject& each : lock_benchmark::benchmark_subjects())
        if (arguments.only.empty() or
            std::any_of(arguments.only.begin(), arguments.only.end(),
                        [&](const std::string& part) { return each.name.find(part) != std::string::npos; }))
            taking_part.push_back(each);
    return taking_part;
}

void measure(const fsmutex_arguments& arguments, const benchmark_subject& who, const workload& where,
             measured& into) {
    lock_benchmark::round round(who, where, arguments.directory);
    const auto begin = std::chrono::steady_clock::now();
    const auto done = round.run_for(std::chrono::milliseconds(arguments.milliseconds));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const lock_benchmark::outcome ended = round.end();
    into.per_second.push_back(static_cast<double>(done) / took.count());
    into.cpu_ns.push_back(ended.cpu_ns_per_operation);
    into.slowest_to_fastest.push_back(ended.slowest_to_fastest);
}

const char* text_of(const workload& where) {
    return where.is_disjoint ? "disjoint" : "same";
}

// Repeats are interleaved, so that a machine that changes its speed affects all subjects equally.
results run_all(const fsmutex_arguments& arguments, const std::vector<workload>& workloads,
                const std::vector<benchmark_subject>& who) {
    results all;
    const bool shows_progress = ::isatty(STDERR_FILENO) == 1;
    for (std::size_t c = 0; c != workloads.size(); ++c)
        for (unsigned repeat = 0; repeat != arguments.repeats; ++repeat)
            for (std::size_t w = 0; w != who.size() and is_interrupted == 0; ++w) {
                if (not takes_part(who[w], workloads[c])) continue;
                if (shows_progress)
                    fmt::print(stderr, "\r\033[K{} {}x{}, {}", text_of(workloads[c]), workloads[c].processes,
                               workloads[c].entities, who[w].name);
                measure(arguments, who[w], workloads[c], all[{c, w}]);
            }
    if (shows_progress) fmt::print(stderr, "\r\033[K");
    return all;
}

// Prints the format that tools/plot reads: a chart for each number of waiters, a line for each
// subject.
void print_json(const fsmutex_arguments& arguments, const io::volume_status& volume,
                const std::vector<workload>& workloads, const std::vector<benchmark_subject>& who,
                const results& all) {
    for (const auto& [place, found] : all) {
        const workload& where = workloads[place.first];
        const auto [least, most] = std::minmax_element(found.per_second.begin(), found.per_second.end());
        fmt::print(
            "{{\"bench\":\"fs_mutex_{0}\",\"workload\":\"{1}_{2}x{3}\",\"subject\":\"{4}\","
            "\"series\":\"{5}, {1} entities\",\"parameter\":\"entities\",\"value\":{3},"
            "\"waiters\":{2},\"entities\":{3},\"volume\":\"{6}\",\"milliseconds\":{7},"
            "\"metric\":\"throughput\",\"unit\":\"op/s\",\"better\":\"higher\","
            "\"median\":{8:.0f},\"min\":{9:.0f},\"max\":{10:.0f},\"n\":{11},"
            "\"cpu_ns_per_op\":{12:.0f},\"slowest_to_fastest\":{13:.3f}}}\n",
            volume.in_memory ? "memory" : "disk", text_of(where), where.processes, where.entities,
            who[place.second].name,
            where.processes == 1 ? "1 process" : fmt::format("{} processes", where.processes),
            volume.type_name, arguments.milliseconds, median(found.per_second), *least, *most,
            found.per_second.size(), median(found.cpu_ns), median(found.slowest_to_fastest));
    }
}

// Formats a number with three significant digits.
std::string short_text(double value) {
    if (value >= 99.95) return fmt::format("{:.0f}", value);
    return value >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

template <class Value>
void print_table(const char* title, const std::vector<workload>& workloads, bool is_disjoint,
                 const std::vector<benchmark_subject>& who, const results& all, Value&& value) {
    fmt::print("\n{}; {}\n{:22}", title,
               is_disjoint ? "separate entities per waiter" : "the same entities for all waiters",
               "waiters x entities");
    for (const workload& each : workloads)
        if (each.is_disjoint == is_disjoint)
            fmt::print("{:>8}", fmt::format("{}x{}", each.processes, each.entities));
    fmt::print("\n");
    for (std::size_t w = 0; w != who.size(); ++w) {
        fmt::print("{:22}", who[w].name);
        for (std::size_t c = 0; c != workloads.size(); ++c) {
            if (workloads[c].is_disjoint != is_disjoint) continue;
            const auto found = all.find({c, w});
            fmt::print("{:>8}", found == all.end() ? "-" : short_text(value(found->second)));
        }
        fmt::print("\n");
    }
}

void print_tables(const fsmutex_arguments& arguments, std::string_view volume,
                  const std::vector<workload>& workloads, const std::vector<benchmark_subject>& who,
                  const results& all) {
    fmt::print("{} ({}), {} CPUs; the median of {} repeats of {} ms\n", arguments.directory, volume,
               ::sysconf(_SC_NPROCESSORS_ONLN), arguments.repeats, arguments.milliseconds);
    for (const bool is_disjoint : {false, true}) {
        if (std::none_of(workloads.begin(), workloads.end(),
                         [&](const workload& each) { return each.is_disjoint == is_disjoint; }))
            continue;
        print_table("Locked and unlocked, in thousands per second", workloads, is_disjoint, who, all,
                    [](const measured& of) { return median(of.per_second) / 1e3; });
        print_table("CPU time in µs per operation, waiting included", workloads, is_disjoint, who, all,
                    [](const measured& of) { return median(of.cpu_ns) / 1e3; });
    }
    fmt::print(
        "\nPeers lock several entities one after the other. A limit makes only the system calls that its "
        "algorithm requires.\n");
}

std::string all_subjects() {
    std::string names;
    for (const benchmark_subject& each : lock_benchmark::benchmark_subjects())
        names += (names.empty() ? "" : ", ") + each.name;
    return names;
}

void run_fsmutex(const fsmutex_arguments& arguments) {
    const auto directory = io::path_handle::open(arguments.directory);
    if (not directory) fail(directory.error().message());
    const auto volume = io::volume_of(*directory);
    if (not volume) fail(volume.error().message());
    if (::access(arguments.directory.c_str(), W_OK | X_OK) != 0)
        fail(error::with_path(errno, "create a file in this directory", arguments.directory).message());
    const std::vector<benchmark_subject> who = chosen(arguments);
    if (who.empty()) refuse_usage(fmt::format("--only matches none of the subjects: {}", all_subjects()));
    const std::vector<workload> workloads = workloads_of(arguments);
    // The files are removed before the program ends.
    for (const int interrupted : {SIGINT, SIGTERM})
        std::signal(interrupted, [](int) { is_interrupted = 1; });
    const results all = run_all(arguments, workloads, who);
    if (is_interrupted != 0) fail("interrupted");
    if (arguments.json)
        print_json(arguments, *volume, workloads, who, all);
    else
        print_tables(arguments, volume->type_name, workloads, who, all);
}

}  // namespace

void add_bench_fsmutex(command_syntax bench) {
    const command_syntax fsmutex =
        bench.add_subcommand("fsmutex", "measure cross-process locks on a file system")
            .example("sluice bench fsmutex --only memory_map --only robust /dev/shm");
    const auto arguments = std::make_shared<fsmutex_arguments>();
    fsmutex.add_option("DIRECTORY", arguments->directory, "directory on the file system to measure")
        .required();
    fsmutex.add_flag("--json", arguments->json, "print JSON lines instead of tables");
    fsmutex.add_option("--waiters", arguments->waiters, "numbers of processes")
        .value_name("N,...")
        .separated_by(',')
        .between(1U, lock_benchmark::processes_max)
        .shows_default();
    fsmutex.add_option("--entities", arguments->entities, "numbers of names locked at once")
        .value_name("N,...")
        .separated_by(',')
        .between(1U, 64U)
        .shows_default();
    fsmutex.add_option("--which", arguments->which, "names that the processes lock: same, disjoint, both")
        .value_name("SET")
        .one_of({"same", "disjoint", "both"})
        .shows_default();
    fsmutex
        .add_option("--only", arguments->only,
                    "measure only subjects whose name contains this text (repeatable)")
        .value_name("NAME")
        .one_value_each_time();
    fsmutex.add_option("--time", arguments->milliseconds, "milliseconds per repeat")
        .value_name("MS")
        .between(1U, 3'600'000U)
        .shows_default();
    fsmutex.add_option("--repeats", arguments->repeats, "repeats; the median is reported")
        .between(1U, 1000U)
        .shows_default();
    fsmutex.on_call([arguments] { run_fsmutex(*arguments); });
}

}  // namespace sluice::cli
