#include "bench/harness/benchmark.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <numeric>
#include <random>

#include "bench/harness/allocation_counter.hpp"
#include "bench/harness/json_row.hpp"
#include "bench/harness/statistics.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::bench {

// Null in a program that does not link the counter; then the row has no such field.
[[gnu::weak]] std::uint64_t allocations() noexcept;

namespace {

constexpr unsigned repeats = 9;
constexpr unsigned repeats_quick = 3;
constexpr std::uint64_t quick_divisor = 10;
constexpr unsigned rounds_of_turns = 400;
constexpr unsigned rounds_of_turns_quick = 40;

double now_ns(clockid_t clock) {
    timespec time{};
    ENSURE(clock_gettime(clock, &time) == 0, "the thread passed to cpu_of() still runs");
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

std::uint64_t allocations_so_far() {
    return &allocations != nullptr ? allocations() : 0;
}

struct description {
    const char* metric;
    const char* unit;
    const char* better;
};

description describe(metric what) {
    switch (what) {
        case metric::time_per_operation:
            return {"time", "ns/op", "lower"};
        case metric::cpu_per_operation:
            return {"cpu", "ns/op", "lower"};
        case metric::operations_per_second:
            return {"throughput", "op/s", "higher"};
        case metric::gigabytes_per_second:
            return {"throughput", "GB/s", "higher"};
        case metric::bytes:
            return {"memory", "B", "lower"};
    }
    ENSURE(false, "a metric without a description");
    return {};
}

template <class Samples, class Field>
std::vector<double> column(const Samples& samples, Field field) {
    std::vector<double> values;
    for (const auto& sample : samples)
        values.push_back(sample.*field);
    return values;
}

void add_percentiles(json_row& row, const latency_histogram& latencies) {
    static constexpr struct {
        const char* name;
        double fraction;
    } percentiles[] = {{"p50_ns", 0.5},         {"p90_ns", 0.9},      {"p99_ns", 0.99},
                       {"p999_ns", 0.999},      {"p9999_ns", 0.9999}, {"p99999_ns", 0.99999},
                       {"p999999_ns", 0.999999}};
    for (const auto& wanted : percentiles)
        if (latencies.resolves(wanted.fraction)) row.add(wanted.name, latencies.percentile(wanted.fraction));
    if (latencies.count() > 0) row.add("max_ns", latencies.max());
}

measurement measure_by(const clockid_t& clock, const std::function<void()>& work) {
    const std::uint64_t allocations_before = allocations_so_far();
    const double cpu_before = now_ns(clock);
    const double wall_before = now_ns(CLOCK_MONOTONIC);
    work();
    const double wall_after = now_ns(CLOCK_MONOTONIC);
    return {.wall_ns = wall_after - wall_before,
            .cpu_ns = now_ns(clock) - cpu_before,
            .allocations = static_cast<double>(allocations_so_far() - allocations_before)};
}

}  // namespace

void run::measure(const std::function<void()>& work) {
    ENSURE(not has_measured_, "measure() is called once per repeat");
    has_measured_ = true;
    measured_ = measure_by(clock_, work);
}

void run::cpu_of(pthread_t thread) {
    ENSURE(pthread_getcpuclockid(thread, &clock_) == 0, "the thread must run");
}

void turns::measure(std::span<const turn> of) {
    ENSURE(measured_.empty(), "measure() is called once");
    constexpr unsigned seed = 1;  // the same order in each run, so that runs are comparable
    constexpr unsigned warming_up = 2;
    std::minstd_rand lots(seed);
    std::vector<std::size_t> order(of.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (unsigned round = 0; round != warming_up + rounds_; ++round) {
        std::shuffle(order.begin(), order.end(), lots);
        std::vector<measurement> these(of.size());
        for (const std::size_t who : order)
            these[who] = measure_by(clock_, [&] { of[who](operations_); });
        if (round >= warming_up) measured_.push_back(std::move(these));
    }
}

workload& workload::subject(std::string name, std::function<void(run&)> body) {
    contender& added = contenders_.emplace_back();
    added.name = std::move(name);
    added.body = std::move(body);
    return *this;
}

workload& workload::subjects_in_turns(const std::vector<std::string>& names,
                                      std::function<void(turns&)> body) {
    ENSURE(contenders_.empty(), "all subjects of a workload take turns, or none");
    for (const std::string& name : names)
        (void)subject(name, {});
    in_turns_ = std::move(body);
    return *this;
}

clockid_t workload::clock() const noexcept {
    return options_.cpu == cpu_clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID;
}

workload::sample workload::sample_of(std::uint64_t done, const measurement& measured) const {
    const auto operations = static_cast<double>(std::max<std::uint64_t>(done, 1));
    const double seconds = measured.wall_ns / 1e9;
    sample result{.value = 0,
                  .cpu_ns_per_operation = measured.cpu_ns / operations,
                  .allocations_per_operation = measured.allocations / operations};
    switch (options_.metric) {
        case metric::time_per_operation:
            result.value = measured.wall_ns / operations;
            break;
        case metric::cpu_per_operation:
            result.value = result.cpu_ns_per_operation;
            break;
        case metric::operations_per_second:
            result.value = static_cast<double>(done) / seconds;  // none, as far as this measures
            break;
        case metric::gigabytes_per_second:
            result.value = operations * static_cast<double>(options_.bytes_per_operation) / 1e9 / seconds;
            break;
        case metric::bytes:
            break;  // the subject's own value
    }
    return result;
}

bool workload::repeat(contender& who, std::uint64_t operations, bool keep) {
    run current(operations, clock());
    try {
        who.body(current);
    } catch (const std::exception& failure) {  // some peers throw
        std::fprintf(stderr, "%s, %s: failed: %s\n", options_.name.c_str(), who.name.c_str(), failure.what());
        who.active = false;
        return false;
    }
    if (current.skipped_) {
        std::fprintf(stderr, "%s, %s: skipped: %s\n", options_.name.c_str(), who.name.c_str(),
                     current.skipped_->c_str());
        who.active = false;
        return true;
    }
    ENSURE(current.has_measured_ or current.bytes_, "a subject calls measure() or skip()");
    if (not keep) return true;
    measurement measured = current.measured_;
    measured.cpu_ns = current.cpu_spent_ns_.value_or(measured.cpu_ns);
    sample& kept = who.samples.emplace_back(sample_of(current.operations_, measured));
    if (options_.metric == metric::bytes) {
        ENSURE(current.bytes_.has_value(), "a subject calls occupies() or skip()");
        kept.value = *current.bytes_;
    }
    who.latencies.merge(current.latencies_);
    for (const auto& [name, value] : current.notes_)
        who.notes[name].push_back(value);
    return true;
}

void workload::repeat_turns(unsigned rounds) {
    turns all(options_.operations, rounds, clock());
    in_turns_(all);
    ENSURE(all.measured_.size() == rounds, "subjects that take turns call turns::measure()");
    for (const std::vector<measurement>& these : all.measured_) {
        ENSURE(these.size() == contenders_.size(), "one turn for each name");
        for (std::size_t who = 0; who != these.size(); ++who)
            contenders_[who].samples.push_back(sample_of(options_.operations, these[who]));
    }
}

std::string workload::row(std::string_view bench, const contender& who) const {
    const auto [metric_name, unit, better] = describe(options_.metric);
    const std::vector<double> values = column(who.samples, &sample::value);
    const std::vector<double> cpu = column(who.samples, &sample::cpu_ns_per_operation);
    const summary s = summarise(values);

    json_row row;
    row.add("bench", bench).add("workload", options_.name).add("subject", who.name);
    if (const auto& series = options_.series)
        row.add("series", series->name).add("parameter", series->parameter).add("value", series->value);
    row.add("metric", metric_name).add("unit", unit).add("better", better);
    row.add("median", s.median).add("min", s.min).add("max", s.max).add("n", s.n);
    row.add("cpu_ns_per_op", summarise(cpu).median);

    const auto limit = std::find_if(contenders_.begin(), contenders_.end(),
                                    [](const contender& c) { return c.name == "limit" and c.active; });
    if (limit != contenders_.end() and limit->samples.size() == who.samples.size() and &*limit != &who) {
        row.add("ratio_to_limit", paired_ratio(values, column(limit->samples, &sample::value)));
        row.add("cpu_ratio_to_limit",
                paired_ratio(cpu, column(limit->samples, &sample::cpu_ns_per_operation)));
    }
    if (&allocations != nullptr)
        row.add("allocations_per_op",
                summarise(column(who.samples, &sample::allocations_per_operation)).median);
    add_percentiles(row, who.latencies);
    for (const auto& [name, recorded] : who.notes)
        row.add(name, summarise(recorded).median);
    return row.text();
}

bool benchmark::run_repeats(workload& what, const std::vector<workload::contender*>& chosen, bool quick,
                            bool show_progress) {
    const std::uint64_t all = what.options_.operations;
    const std::uint64_t few = std::max<std::uint64_t>(all / quick_divisor, 1);
    const unsigned rounds = std::min(quick ? repeats_quick : repeats, what.options_.repeats_max);
    bool good = true;
    for (unsigned round = 0; round <= rounds; ++round) {
        const bool warming_up = round == 0;
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            workload::contender& who = *chosen[(i + round) % chosen.size()];
            if (not who.active) continue;
            if (show_progress)
                std::fprintf(stderr, "\r\033[K%s, %s: %u/%u", what.options_.name.c_str(), who.name.c_str(),
                             round, rounds);
            good = what.repeat(who, warming_up or quick ? few : all, not warming_up) and good;
        }
    }
    return good;
}

bool benchmark::run_workload(workload& what, std::string_view only, bool quick, bool show_progress) {
    const bool whole = what.options_.name.find(only) != std::string::npos;
    std::vector<workload::contender*> chosen;
    for (workload::contender& who : what.contenders_)
        if (whole or who.name.find(only) != std::string::npos) chosen.push_back(&who);
    if (chosen.empty()) return true;

    bool good = true;
    if (what.in_turns_) {
        if (show_progress) std::fprintf(stderr, "\r\033[K%s", what.options_.name.c_str());
        what.repeat_turns(quick ? rounds_of_turns_quick : rounds_of_turns);
    } else {
        good = run_repeats(what, chosen, quick, show_progress);
    }
    if (show_progress) std::fprintf(stderr, "\r\033[K");
    for (const workload::contender* who : chosen)
        if (who->active) std::printf("%s\n", what.row(name_, *who).c_str());
    std::fflush(stdout);
    return good;
}

int benchmark::main(int argc, const char* const* argv) {
    bool quick = false;
    std::string_view only;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--quick") {
            quick = true;
        } else if (argument == "--only" and i + 1 < argc) {
            only = argv[++i];
        } else if (argument == "--help") {
            std::printf(
                "%s\n\nusage: %s [--quick] [--only NAME]\n"
                "  --quick      %u repeats of a tenth of the operations, instead of %u\n"
                "  --only NAME  only subjects or workloads whose name contains NAME\n"
                "Prints JSON Lines, one row per subject and workload.\n",
                question_.c_str(), argv[0], repeats_quick, repeats);
            return 0;
        } else {
            std::fprintf(stderr, "%s: unknown argument '%s'; see --help\n", argv[0], argv[i]);
            return 2;
        }
    }

    bool good = true;
    bool any = false;
    for (workload& what : workloads_) {
        any = any or what.options_.name.find(only) != std::string::npos or
              std::any_of(what.contenders_.begin(), what.contenders_.end(),
                          [&](const auto& who) { return who.name.find(only) != std::string::npos; });
        good = run_workload(what, only, quick, isatty(STDERR_FILENO) == 1) and good;
    }
    if (not any)
        std::fprintf(stderr, "%s: no subject or workload name contains '%s'\n", argv[0], only.data());
    return good and any ? 0 : 1;
}

}  // namespace sluice::bench
