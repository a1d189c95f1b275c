// sluice probe: tests guarantees of a file system that its documentation does not state.

#include <fmt/core.h>
#include <sys/utsname.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "sluice/base/json_string.hpp"
#include "sluice/cli/commands.hpp"
#include "sluice/cli/exit_code.hpp"
#include "sluice/cli/message.hpp"
#include "sluice/io/file/atomicity_probe.hpp"

namespace sluice::cli {
namespace {

struct atomicity_arguments {
    std::string path;
    bool json = false;
    unsigned milliseconds_per_size = 250;
    std::size_t write_bytes_min = 1;
    std::size_t write_bytes_max = 16U << 20;
    std::uint64_t offset_bytes = 0;
    std::string io = "both";
    unsigned writers = 2;
    unsigned readers = 2;
};

std::string size_text(std::size_t bytes) {
    if (bytes >= 1U << 20) return fmt::format("{} MiB", bytes >> 20);
    if (bytes >= 1U << 10) return fmt::format("{} KiB", bytes >> 10);
    return fmt::format("{} B", bytes);
}

const char* name_of(const io::atomicity_series& series) {
    return series.direct ? "direct" : "buffered";
}

io::atomicity_io io_of(const std::string& name) {
    if (name == "both") return io::atomicity_io::both;
    return name == "direct" ? io::atomicity_io::direct : io::atomicity_io::buffered;
}

// The machine, on which the result depends in addition to the volume.
struct machine {
    std::string kernel;
    unsigned processors = 0;

    [[nodiscard]] static machine of_this_process() {
        utsname names{};
        const bool is_known = ::uname(&names) == 0;
        return {.kernel = is_known ? std::string(names.sysname) + ' ' + names.release : "unknown kernel",
                .processors = std::thread::hardware_concurrency()};
    }
};

void print_json(const atomicity_arguments& arguments, const io::atomicity_report& report) {
    fmt::print(
        "{{\"path\":{},\"file_system\":\"{}\",\"writers\":{},\"readers\":{},\"milliseconds_per_size\":{},",
        json_string(arguments.path), report.volume.type_name, arguments.writers, arguments.readers,
        arguments.milliseconds_per_size);
    const machine here = machine::of_this_process();
    fmt::print("\"offset_bytes\":{},\"kernel\":{},\"processors\":{},", arguments.offset_bytes,
               json_string(here.kernel), here.processors);
    fmt::print("\"series\":[");
    const char* between_series = "";
    for (const auto& series : report.series) {
        fmt::print(
            "{}\n{{\"io\":\"{}\",\"refused\":{},\"whole_bytes_max\":{},\"torn_bytes_min\":{},\"rows\":[",
            between_series, name_of(series), series.refused ? json_string(series.refused->message()) : "null",
            series.whole_bytes_max(),
            series.torn_bytes_min() == 0 ? "null" : std::to_string(series.torn_bytes_min()));
        const char* between_rows = "";
        for (const auto& row : series.rows) {
            fmt::print(
                "{}\n{{\"write_bytes\":{},\"writes\":{},\"reads\":{},\"fresh_reads\":{},\"torn_reads\":{},"
                "\"short_reads\":{},\"short_writes\":{}}}",
                between_rows, row.write_bytes, row.writes, row.reads, row.fresh_reads, row.torn_reads,
                row.short_reads, row.short_writes);
            between_rows = ",";
        }
        fmt::print("]}}");
        between_series = ",";
    }
    fmt::print("]}}\n");
}

void print_series(const io::atomicity_series& series) {
    if (series.refused) {
        fmt::print("{}: not supported here ({})\n\n", name_of(series), series.refused->message());
        return;
    }
    fmt::print("{}\n{:>10} {:>12} {:>12} {:>12} {:>12} {:>12}\n", name_of(series), "size", "writes", "reads",
               "fresh reads", "torn reads", "short calls");
    for (const auto& row : series.rows)
        fmt::print("{:>10} {:>12} {:>12} {:>12} {:>12} {:>12}\n", size_text(row.write_bytes), row.writes,
                   row.reads, row.fresh_reads, row.torn_reads, row.short_reads + row.short_writes);
    const std::size_t whole = series.whole_bytes_max();
    if (whole == 0)
        fmt::print("No size is free of torn reads, or the readers saw too few writes.\n\n");
    else
        fmt::print("No torn reads: writes of up to {}.\n\n", size_text(whole));
}

void print_table(const atomicity_arguments& arguments, const io::atomicity_report& report) {
    const machine here = machine::of_this_process();
    fmt::print(
        "Rewriting one range of a file in {} ({}), from byte {} on: {} writers, {} readers, {} ms for each "
        "size;\n{}, {} CPUs.\n"
        "Each write and each read is one system call. A torn read returned bytes of more than one write; a "
        "fresh one\nreturned a different write than the previous read; a short call transferred less than "
        "requested.\n\n",
        arguments.path, report.volume.type_name, arguments.offset_bytes, arguments.writers, arguments.readers,
        arguments.milliseconds_per_size, here.kernel, here.processors);
    for (const auto& series : report.series)
        print_series(series);
    fmt::print(
        "What this shows: a size with torn reads is not atomic on this volume.\n"
        "What it does not: a size without torn reads can still tear under another load, kernel or number of "
        "CPUs;\nwith fewer than a hundred fresh reads the test is weak (--time extends it).\n"
        "The result does not apply to other offsets (--offset), other hosts, or power failures.\n");
}

void run_atomicity(const atomicity_arguments& arguments) {
    const auto directory = io::path_handle::open(arguments.path);
    if (arguments.write_bytes_min > arguments.write_bytes_max)
        refuse_usage(fmt::format("--min {} is larger than --max {}", arguments.write_bytes_min,
                                 arguments.write_bytes_max));
    if (not directory) {
        const bool is_file = directory.error() == std::errc::not_a_directory;
        fail(directory.error().message() +
             (is_file ? "; name a directory, because the probe creates a temporary file in it" : ""));
    }
    const auto report = io::probe_atomicity(
        *directory, {.time_per_size = std::chrono::milliseconds(arguments.milliseconds_per_size),
                     .write_bytes_min = arguments.write_bytes_min,
                     .write_bytes_max = arguments.write_bytes_max,
                     .writers = arguments.writers,
                     .readers = arguments.readers,
                     .offset_bytes = arguments.offset_bytes,
                     .io = io_of(arguments.io)});
    if (not report) fail(about(arguments.path, report.error()));
    arguments.json ? print_json(arguments, *report) : print_table(arguments, *report);
}

}  // namespace

void add_probe(command_syntax app) {
    const command_syntax probe =
        app.add_subcommand("probe", "test the guarantees of a file system").group("Tools");
    probe.require_subcommands(1);
    const command_syntax atomicity =
        probe
            .add_subcommand("atomicity", "find the largest write that concurrent readers never see partially")
            .example("sluice probe atomicity /mnt/share");
    const auto arguments = std::make_shared<atomicity_arguments>();
    atomicity.add_option("DIRECTORY", arguments->path, "directory on the file system to test").required();
    atomicity.add_flag("--json", arguments->json, "print a JSON object");
    atomicity.add_option("--time", arguments->milliseconds_per_size, "milliseconds per size")
        .value_name("MS")
        .between(1U, 3'600'000U)
        .shows_default();
    atomicity.add_option("--min", arguments->write_bytes_min, "smallest write in bytes")
        .value_name("BYTES")
        .between(std::size_t{1}, std::size_t{1} << 30)
        .shows_default();
    atomicity.add_option("--max", arguments->write_bytes_max, "largest write in bytes")
        .value_name("BYTES")
        .between(std::size_t{1}, std::size_t{1} << 30)
        .shows_default();
    atomicity.add_option("--offset", arguments->offset_bytes, "file offset of all reads and writes, in bytes")
        .value_name("BYTES")
        .between(std::uint64_t{0}, std::uint64_t{1} << 30)
        .shows_default();
    atomicity.add_option("--io", arguments->io, "buffered, direct (O_DIRECT), or both")
        .value_name("KIND")
        .one_of({"buffered", "direct", "both"})
        .shows_default();
    atomicity.add_option("--writers", arguments->writers, "number of writing threads")
        .between(1U, 64U)
        .shows_default();
    atomicity.add_option("--readers", arguments->readers, "number of reading threads")
        .between(1U, 64U)
        .shows_default();
    atomicity.on_call([arguments] { run_atomicity(*arguments); });
}

}  // namespace sluice::cli
