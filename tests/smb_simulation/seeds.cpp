#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <vector>

#include "tests/smb_simulation/world/history_run.hpp"
#include "tests/smb_simulation/world/random_run.hpp"

// smb_seeds [--first N] [--seeds N] [--jobs N] [--seed N]: runs busy clients and histories with
// many seeds. Progress and failures go to standard error; the exit status is 1 if a seed failed.
// `--seed N` replays one.

namespace sluice::smb_simulation {
namespace {

struct wanted_runs {
    std::uint64_t first = 1;
    std::uint64_t count = 100;
    std::uint64_t jobs = 1;
};

[[nodiscard]] run_outcome run_both(std::uint64_t seed) {
    run_outcome outcome = run_at_random(seed);
    const history all = record_history(seed);
    if (not is_linearizable(all))
        outcome.verdict += "no order of these operations explains them:\n" + to_text(all);
    return outcome;
}

// Returns whether the run succeeded. A failed ENSURE ends the process; its last line of progress
// names the seed.
bool run_one(std::uint64_t seed) {
    const run_outcome outcome = run_both(seed);
    const bool is_fine = outcome.verdict.empty() and not testing::Test::HasFailure();
    if (not is_fine)
        std::fprintf(stderr, "seed %llu failed; replay with: smb_seeds --seed %llu\n%s",
                     static_cast<unsigned long long>(seed), static_cast<unsigned long long>(seed),
                     outcome.verdict.c_str());
    return is_fine;
}

// A process per seed would be too slow, and one process for all would end with the first ENSURE:
// each child runs a block of seeds, and reports the current one through a pipe.
constexpr std::uint64_t block = 50;

bool run_block(std::uint64_t first, std::uint64_t end, std::uint64_t step, std::uint64_t& next) {
    int ends[2];
    if (::pipe(ends) != 0) return false;
    const pid_t child = ::fork();
    if (child == 0) {
        bool is_fine = true;
        for (std::uint64_t seed = first; seed < end; seed += step) {
            (void)!::write(ends[1], &seed, sizeof seed);
            is_fine = run_one(seed) and is_fine;
            if (not is_fine) ::_exit(1);
        }
        ::_exit(0);
    }
    (void)::close(ends[1]);
    std::uint64_t last = first;
    for (std::uint64_t at = 0; ::read(ends[0], &at, sizeof at) == sizeof at;)
        last = at;
    (void)::close(ends[0]);
    int status = 0;
    (void)::waitpid(child, &status, 0);
    const bool is_fine = WIFEXITED(status) and WEXITSTATUS(status) == 0;
    if (not is_fine and not WIFEXITED(status))
        std::fprintf(stderr, "seed %llu ended the program by signal %d; replay with: smb_seeds --seed %llu\n",
                     static_cast<unsigned long long>(last), WTERMSIG(status),
                     static_cast<unsigned long long>(last));
    next = is_fine ? end : last + step;
    return is_fine;
}

// Runs every `step`th seed, starting with `first`. Returns the number of failures.
int run_share(std::uint64_t first, std::uint64_t end, std::uint64_t step) {
    int failures = 0;
    for (std::uint64_t at = first; at < end;) {
        std::uint64_t next = at;
        const std::uint64_t until = std::min(end, at + block * step);
        failures += not run_block(at, until, step, next);
        at = next < until ? next : at + block * step;
        if (first % step == 0)
            std::fprintf(stderr, "at seed %llu, %d failures in this job\n",
                         static_cast<unsigned long long>(at), failures);
    }
    return failures;
}

// The threads of a simulation alternate, which costs least on one CPU.
void stay_on_one_cpu(std::uint64_t job) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(job % static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_ONLN)), &one);
    (void)::sched_setaffinity(0, sizeof one, &one);
}

int run_all(const wanted_runs& wanted) {
    std::vector<pid_t> jobs;
    for (std::uint64_t i = 0; i != wanted.jobs; ++i) {
        const pid_t job = ::fork();
        if (job == 0) stay_on_one_cpu(i);
        if (job == 0)
            ::_exit(run_share(wanted.first + i, wanted.first + wanted.count, wanted.jobs) == 0 ? 0 : 1);
        jobs.push_back(job);
    }
    int worst = 0;
    for (const pid_t job : jobs) {
        int status = 0;
        (void)::waitpid(job, &status, 0);
        if (not WIFEXITED(status) or WEXITSTATUS(status) != 0) worst = 1;
    }
    std::fprintf(stderr, "%llu seeds from %llu: %s\n", static_cast<unsigned long long>(wanted.count),
                 static_cast<unsigned long long>(wanted.first), worst == 0 ? "all succeeded" : "some failed");
    return worst;
}

int print_one(std::uint64_t seed) {
    const run_outcome one = run_both(seed);
    std::fprintf(stderr, "%s", one.verdict.c_str());
    std::fprintf(
        stdout,
        "seed %llu: digest %016llx, %llu switches, %llu events, %llu replies, %u successes, %zu pairs of "
        "opens, %zu of locks, %zu comparisons, %zu breaks, %zu of them early, %llu offloaded calls\n",
        static_cast<unsigned long long>(seed), static_cast<unsigned long long>(one.digest),
        static_cast<unsigned long long>(one.switches), static_cast<unsigned long long>(one.events),
        static_cast<unsigned long long>(one.replies), one.successes, one.open_pairs, one.lock_pairs,
        one.comparisons, one.breaks, one.early_breaks, static_cast<unsigned long long>(one.offloaded_calls));
    return one.verdict.empty() and not testing::Test::HasFailure() ? 0 : 1;
}

}  // namespace
}  // namespace sluice::smb_simulation

int main(int count, char** arguments) {
    using namespace sluice::smb_simulation;
    testing::InitGoogleTest(&count, arguments);
    wanted_runs wanted;
    for (int i = 1; i + 1 < count; i += 2) {
        std::uint64_t value = 0;
        const char* const text = arguments[i + 1];
        (void)std::from_chars(text, text + std::strlen(text), value);
        const std::string_view name = arguments[i];
        if (name == "--seed") return print_one(value);
        if (name == "--first") wanted.first = value;
        if (name == "--seeds") wanted.count = value;
        if (name == "--jobs") wanted.jobs = value;
    }
    return run_all(wanted);
}
