// Kill storms: processes that lock random sets of entities are killed and stopped at random
// moments. An oracle in shared memory detects conflicting holders.

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/fsmutex/conformance_testing.hpp"
#include "sluice/fsmutex/process/processes_testing.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

constexpr std::size_t workers = 8;
constexpr std::size_t entities = 6;
// The killer stops and continues a process in two sleeps of 8 ms.
constexpr auto longest_sleep = 16ms;

// A life of a worker: its slot, and its number among the lives in that slot. Never zero.
using life = std::uint32_t;
constexpr life life_of(std::size_t slot, std::uint32_t count) {
    return static_cast<life>(slot + 1) | count << 8;
}

struct world {
    std::array<std::atomic<life>, entities> writer;
    std::array<std::array<std::atomic<life>, workers>, entities> readers;
    std::array<std::atomic<std::uint32_t>, workers> deaths;  // by slot, counted before they happen
    std::array<std::atomic<std::uint64_t>, workers> grants;
    std::atomic<std::uint64_t> reported_deaths;
};

// Fails unless the other recorded holder was killed: each kill is recorded before it happens.
void must_be_dead(const world& all, life other, const char* problem) {
    const std::size_t slot = (other & 0xff) - 1;
    if (all.deaths[slot].load() <= other >> 8) fail_child(problem);
}

class oracle {
public:
    oracle(world& all, std::size_t slot, life self, bool reports_deaths)
        : all_(all), slot_(slot), self_(self), reports_deaths_(reports_deaths) {}

    void got(std::span<const entity> held, bool owner_died) {
        for (const entity each : held) {
            const std::size_t e = each.number();
            bool is_written = each.is_exclusive();
            const life writer = is_written ? all_.writer[e].exchange(self_) : all_.writer[e].load();
            if (writer != 0) {
                must_be_dead(all_, writer, "a writer holds it as well");
                if (reports_deaths_ and not owner_died) fail_child("the death of a writer was not reported");
                if (not is_written) (void)all_.writer[e].compare_exchange_strong(writer_of(writer), 0);
            }
            if (not is_written) {
                all_.readers[e][slot_].store(self_);
                continue;
            }
            for (std::size_t other = 0; other != workers; ++other)
                if (const life reader = all_.readers[e][other].exchange(0); reader != 0)
                    must_be_dead(all_, reader, "a reader holds it as well");
        }
    }
    void gives_back(std::span<const entity> held) {
        for (const entity each : held) {
            const std::size_t e = each.number();
            if (each.is_exclusive()) {
                if (all_.writer[e].exchange(0) != self_) fail_child("another process came in between");
            } else if (all_.readers[e][slot_].exchange(0) != self_) {
                fail_child("a writer came in between");
            }
        }
    }

private:
    life& writer_of(life seen) { return seen_ = seen; }

    world& all_;
    std::size_t slot_;
    life self_;
    bool reports_deaths_;
    life seen_ = 0;
};

std::vector<entity> draw(seeded_random& random, bool has_shared) {
    std::vector<entity> drawn;
    for (std::uint64_t e = 0; e != entities; ++e)
        if (random.below(3) == 0)
            drawn.emplace_back(
                e, has_shared and random.below(2) == 0 ? lock_mode::shared : lock_mode::exclusive);
    if (drawn.empty()) drawn.emplace_back(random.below(entities));
    return drawn;
}

// Its date jumps by hours, back and forth: only records for people may depend on it.
class jumping_clock final : public clock_source {
public:
    [[nodiscard]] steady_time steady_now() const noexcept override { return machine_.steady_now(); }
    [[nodiscard]] utc_time utc_now() const noexcept override {
        static constexpr std::uint64_t hours = 48;
        return machine_.utc_now() + std::chrono::hours(count_.fetch_add(7) % hours) - std::chrono::hours(24);
    }

private:
    system_clock_source machine_;
    mutable std::atomic<std::uint64_t> count_ = 0;
};

bool is_wanted(const char* variable) {
    return std::getenv(variable) != nullptr;
}

class every_storm : public on_each_algorithm {
protected:
    [[nodiscard]] process worker(std::size_t slot) {
        const life self = life_of(slot, all->deaths[slot].load());
        return process([this, slot, self] { work(slot, self); },
                       slot % 2 == 0 ? of_some : namespaces::shared);
    }
    // Opens the mutex, on a full volume once there is space.
    [[nodiscard]] std::unique_ptr<shared_fs_mutex> open_when_possible(const dependencies& from,
                                                                      std::size_t slot = 0) const {
        for (;;) {
            auto opened = tested().open(anchor(slot), "locks", from);
            if (opened) return std::move(*opened);
            if (not is_full(opened.error())) fail_child(opened.error().message().c_str());
            std::this_thread::sleep_for(1ms);
        }
    }
    [[nodiscard]] bool is_full(const error& why) const {
        return is_full_at_times and why == std::errc::no_space_on_device;
    }
    void work(std::size_t slot, life self) {
        const jumping_clock clock;
        const auto mutex =
            open_when_possible({.clock = &clock, .random = dependencies::of_this_machine().random}, slot);
        seeded_random random(self);
        oracle judge(*all, slot, self, tested().reports_deaths);
        for (;;) {
            const auto wanted = draw(random, mutex->has_shared_mode());
            const deadline within = random.below(4) == 0 ? deadline(1ms) : deadline();
            auto held = random.below(8) == 0 ? mutex->try_lock(wanted) : mutex->lock(wanted, within);
            if (not held and (held.error() == std::errc::timed_out or is_full(held.error()))) continue;
            if (not held) fail_child(held.error().message().c_str());
            judge.got(wanted, held->owner_died());
            if (held->owner_died()) all->reported_deaths.fetch_add(1);
            if (random.below(4) == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(random.below(500)));
            judge.gives_back(wanted);
            held->unlock();
            all->grants[slot].fetch_add(1);
        }
    }
    [[nodiscard]] std::uint64_t grants() const {
        std::uint64_t sum = 0;
        for (const auto& each : all->grants)
            sum += each.load();
        return sum;
    }
    // Kills it. A worker that has ended by itself has reported a problem.
    void kill(process& victim, std::size_t slot) {
        siginfo_t end{};
        all->deaths[slot].fetch_add(1);
        victim.send(SIGKILL);
        ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(victim.id()), &end, WEXITED | WNOWAIT), 0);
        EXPECT_EQ(end.si_code, CLD_KILLED) << "a worker has reported a problem";
        victim.stop();
    }

    // Returns the disk space that the mutex takes now, without the files of lock_files.
    [[nodiscard]] std::uint64_t disk_bytes() const {
        struct stat seen{};
        if (::stat(directory.path_of("locks").c_str(), &seen) != 0 or not S_ISREG(seen.st_mode)) return 0;
        return static_cast<std::uint64_t>(seen.st_blocks) * 512;
    }
    // Locks everything, by a new process after all others are dead.
    void lock_all_that_was_left() {
        const auto mutex = open_when_possible(dependencies::of_this_machine());
        std::vector<entity> every;
        for (std::uint64_t e = 0; e != entities; ++e)
            every.emplace_back(e);
        auto held = mutex->lock(every, 20s);
        while (not held and is_full(held.error()))
            held = mutex->lock(every, 20s);
        ASSERT_TRUE(held) << held.error().message();
        held->unlock();
        held = mutex->try_lock(every);
        while (not held and is_full(held.error()))
            held = mutex->try_lock(every);
        EXPECT_FALSE(held.value().owner_died());
    }

    shared_memory<world> all;
    namespaces of_some = is_wanted("SLUICE_STORM_NAMESPACES") ? namespaces::own : namespaces::shared;
    bool is_full_at_times = is_wanted("SLUICE_STORM_FULL");
};

TEST_P(every_storm, has_no_conflicting_holders_and_no_stuck_process) {
    const char* const chosen = std::getenv("SLUICE_STORM_SECONDS");
    const auto end =
        steady::now() + (chosen != nullptr ? std::chrono::seconds(std::strtoul(chosen, nullptr, 10)) : 2s);
    // Interrupts the current call of a worker, and does nothing else.
    struct sigaction interrupting{};
    interrupting.sa_handler = [](int) {};
    ASSERT_EQ(::sigaction(SIGUSR1, &interrupting, nullptr), 0);
    const auto seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    seeded_random random(seed);
    std::vector<process> running;
    for (std::size_t slot = 0; slot != workers; ++slot)
        running.push_back(worker(slot));
    std::uint64_t kills = 0;
    std::uint64_t grants_seen = 0;
    auto last_look = steady::now();
    auto pause = steady::duration::zero();
    auto longest_pause = steady::duration::zero();
    std::uint64_t most_of_disk = 0;
    auto longest_call = steady::duration::zero();
    while (steady::now() < end and not HasFailure()) {
        // If the last poll was long ago, this process itself did not run: so at most
        // `longest_sleep` counts.
        const auto since_last_look = steady::now() - std::exchange(last_look, steady::now());
        const std::uint64_t granted = grants();
        pause = granted != std::exchange(grants_seen, granted)
                    ? steady::duration::zero()
                    : pause + std::min<steady::duration>(since_last_look, longest_sleep);
        longest_pause = std::max(longest_pause, pause);
        std::this_thread::sleep_for(random.below(8000) * 1us);
        const auto before_call = steady::now();
        most_of_disk = std::max(most_of_disk, disk_bytes());
        longest_call = std::max(longest_call, steady::now() - before_call);
        const std::size_t slot = random.below(workers);
        running[random.below(workers)].send(SIGUSR1);
        if (random.below(4) == 0) {
            running[slot].send(SIGSTOP);
            std::this_thread::sleep_for(random.below(8000) * 1us);
            running[slot].send(SIGCONT);
            continue;
        }
        kill(running[slot], slot);
        running[slot] = worker(slot);
        ++kills;
    }
    const std::uint64_t before = grants();
    // Where each step sends messages to a server, there are a few per second.
    const std::uint64_t more = second_anchor ? 20 : 200;
    EXPECT_TRUE(eventually([&] { return grants() > before + more; })) << "a process is stuck";
    for (std::size_t slot = 0; slot != workers; ++slot)
        kill(running[slot], slot);
    lock_all_that_was_left();
    // The longest time without a grant: on an idle machine at most 100 ms.
    EXPECT_LT(longest_pause, 2s);
    EXPECT_LE(most_of_disk, 4U << 20);
    RecordProperty("disk_kib_max", static_cast<int>(most_of_disk >> 10));
    RecordProperty("longest_pause_ms", static_cast<int>(longest_pause / 1ms));
    // The volume's own delay: these calls request no lock.
    RecordProperty("longest_call_ms", static_cast<int>(longest_call / 1ms));
    RecordProperty("kills", static_cast<int>(kills));
    RecordProperty("grants", static_cast<int>(grants()));
    if (tested().reports_deaths and kills > 100) EXPECT_GT(all->reported_deaths.load(), 0);
    // NFS: a client keeps a removed file that is open under another name, and
    // caches names for 30 s.
    if (not tested().leaves_its_file)
        EXPECT_TRUE(eventually([&] { return directory.entry_count() == 0; }, 40s));
}

SLUICE_ON_EACH_ALGORITHM(every_storm);

}  // namespace
}  // namespace sluice::fsmutex
