#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/harness/latency_histogram.hpp"

namespace sluice::bench {

/// The measure of a workload.
enum class metric {
    time_per_operation,
    cpu_per_operation,
    operations_per_second,
    gigabytes_per_second,
    bytes,  // of memory: the value of run::occupies()
};

/// The CPU time that is counted: that of all threads of the process, or of the one that calls
/// run::measure(). A subject with the relevant part in another thread, like an echo server, names
/// that thread with run::cpu_of().
enum class cpu_clock { process, thread };

/// The cost of some work.
struct measurement {
    double wall_ns = 0;
    double cpu_ns = 0;
    double allocations = 0;
};

/// One repeat of one subject, as the subject sees it.
class run {
public:
    /// Returns the number of operations to do.
    [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }

    /// Runs `work` and measures it. Once per repeat; preparations before it are not measured.
    void measure(const std::function<void()>& work);

    /// Counts the CPU time of this thread instead. It must live until measure() returns.
    void cpu_of(pthread_t thread);

    /// Counts this much CPU time in total instead of the time measured: for threads that read their
    /// own clocks, because some of their time is not part of the work.
    void cpu_spent(double ns) { cpu_spent_ns_ = ns; }

    /// Sets the memory in use, for metric::bytes. Instead of measure().
    void occupies(double bytes) { bytes_ = bytes; }

    /// Corrects operations() for work that is bounded by time instead.
    void did(std::uint64_t operations) noexcept { operations_ = operations; }

    /// Records the duration of one operation, for percentiles over all repeats. One thread, or
    /// merge into latencies() afterwards.
    void record(std::uint64_t ns) noexcept { latencies_.record(ns); }
    [[nodiscard]] latency_histogram& latencies() noexcept { return latencies_; }

    /// Adds a further number to the row; the median over several repeats.
    void note(const std::string& name, double value) { notes_[name] = value; }

    /// Skips this subject, because this machine lacks something. Call it instead of measure().
    void skip(std::string why) { skipped_ = std::move(why); }

private:
    friend class workload;
    run(std::uint64_t operations, clockid_t clock) noexcept : operations_(operations), clock_(clock) {}

    std::uint64_t operations_;
    clockid_t clock_;
    bool has_measured_ = false;
    measurement measured_;
    std::optional<double> cpu_spent_ns_;
    std::optional<double> bytes_;
    latency_histogram latencies_;
    std::map<std::string, double> notes_;
    std::optional<std::string> skipped_;
};

/// Subjects that take turns. A difference of a few per cent only shows where everything else is the
/// same: the time, the memory and the descriptors.
class turns {
public:
    /// A turn: does the given number of operations.
    using turn = std::function<void(std::uint64_t operations)>;

    /// Measures each subject's turn repeatedly; `of` is in the order of their names. The order in a
    /// round is random, so that no subject always finds the caches of the same predecessor. Call
    /// once.
    void measure(std::span<const turn> of);

private:
    friend class workload;
    turns(std::uint64_t operations, unsigned rounds, clockid_t clock) noexcept
        : operations_(operations), rounds_(rounds), clock_(clock) {}

    std::uint64_t operations_;
    unsigned rounds_;
    clockid_t clock_;
    std::vector<std::vector<measurement>> measured_;  // by round and subject
};

/// The place of a workload in a series whose workloads differ in one number: the name of the
/// series, the meaning of the number, and its value here. tools/plot draws a line through them, for
/// each subject.
struct workload_series {
    std::string name;
    std::string parameter;
    double value = 0;
};

struct workload_options {
    std::string name;
    std::optional<workload_series> series = {};
    bench::metric metric = metric::time_per_operation;
    std::uint64_t operations = 1;           // per repeat, a tenth of them with --quick; or per turn
    std::uint64_t bytes_per_operation = 0;  // for gigabytes_per_second
    cpu_clock cpu = cpu_clock::process;
    unsigned repeats_max = 9;  // fewer for subjects that take seconds, and are far from the others
};

/// A task, and the subjects that do it. By convention the subject `limit` is the lower bound: the
/// least that the machine needs for it. Every other row has its ratio to it. Our subjects are named
/// sluice.*, peers after their package.
class workload {
public:
    explicit workload(workload_options options) : options_(std::move(options)) {}

    workload& subject(std::string name, std::function<void(run&)> body);

    /// Adds subjects that take turns in one repeat, all of a workload's or none; each turn is a
    /// sample. `body` prepares the shared state and calls turns::measure().
    workload& subjects_in_turns(const std::vector<std::string>& names, std::function<void(turns&)> body);

private:
    friend class benchmark;

    struct sample {
        double value;
        double cpu_ns_per_operation;
        double allocations_per_operation;
    };
    struct contender {
        std::string name;
        std::function<void(run&)> body;
        bool active = true;
        std::vector<sample> samples;  // one per repeat; all active contenders have equally many
        latency_histogram latencies;
        std::map<std::string, std::vector<double>> notes;
    };

    // One repeat of one contender. Returns false if it failed. With `keep` false it only warms up.
    bool repeat(contender& who, std::uint64_t operations, bool keep);
    void repeat_turns(unsigned rounds);
    [[nodiscard]] clockid_t clock() const noexcept;
    [[nodiscard]] sample sample_of(std::uint64_t operations, const measurement& measured) const;
    [[nodiscard]] std::string row(std::string_view bench, const contender& who) const;

    workload_options options_;
    std::deque<contender> contenders_;  // a deque: a histogram is too large to be moved
    std::function<void(turns&)> in_turns_;
};

/// A benchmark program: one question, some workloads, and the command line that all
/// such programs share.
///
/// The repeats are interleaved: one of each subject in sequence, then again, so that a machine that
/// changes its speed does so for all. Each round starts with another subject, because the first one
/// finds other caches than the last. For subjects that take turns there is one long repeat.
/// Standard output gets one JSON object per subject and workload and nothing else: bench, workload,
/// subject, metric, unit, better (lower or higher), median, min, max, n, cpu_ns_per_op; where
/// applicable also series, parameter and value; ratio_to_limit and cpu_ratio_to_limit (the median
/// of the ratios of paired repeats), allocations_per_op, p50_ns … p999999_ns, and the subject's
/// notes. Progress goes to standard error if that is a terminal.
class benchmark {
public:
    benchmark(std::string name, std::string question)
        : name_(std::move(name)), question_(std::move(question)) {}

    /// Adds a workload. The reference is valid as long as the benchmark.
    workload& add(workload_options options) { return workloads_.emplace_back(std::move(options)); }

    /// Parses the command line, runs and prints. Returns the exit status: 0; 1 if a subject failed
    /// or --only matched nothing; 2 for invalid usage.
    int main(int argc, const char* const* argv);

private:
    bool run_workload(workload& what, std::string_view only, bool quick, bool show_progress);
    bool run_repeats(workload& what, const std::vector<workload::contender*>& chosen, bool quick,
                     bool show_progress);

    std::string name_;
    std::string question_;
    std::deque<workload> workloads_;
};

}  // namespace sluice::bench
