#include "sluice/cli/lock_benchmark/worker_processes.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include "sluice/base/ensure.hpp"

namespace sluice::lock_benchmark {

// The memory that the processes share. seq_cst for the start and the end, which each happen once.
struct worker_processes::shared_state {
    std::atomic<unsigned> ready;
    std::atomic<bool> is_started;
    std::atomic<bool> is_over;
    struct alignas(64) line {
        std::atomic<std::uint64_t> done;  // relaxed: a count, read by the parent
        std::uint64_t cpu_ns;             // read after its writer has ended
    };
    std::array<line, processes_max> workers;
};

worker_processes::worker_processes(unsigned processes,
                                   const std::function<std::unique_ptr<locker>(unsigned)>& make)
    : processes_(processes) {
    ENSURE(processes != 0 and processes <= processes_max);
    void* const memory =
        ::mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ENSURE(memory != MAP_FAILED);
    shared_state_ = new (memory) shared_state;
    for (unsigned process = 0; process != processes; ++process) {
        const pid_t id = ::fork();
        ENSURE(id >= 0);
        if (id == 0) work(process, make);
        workers_.push_back(id);
    }
    while (shared_state_->ready.load() != processes)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void worker_processes::work(unsigned process, const std::function<std::unique_ptr<locker>(unsigned)>& make) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // otherwise no process would be left to end them
    {
        const auto mine = make(process);
        auto& line = shared_state_->workers[process];
        shared_state_->ready.fetch_add(1);
        while (not shared_state_->is_started.load())
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        while (not shared_state_->is_over.load(std::memory_order_relaxed)) {
            mine->lock_and_unlock();
            line.done.store(line.done.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        }
        timespec used{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        line.cpu_ns = static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
                      static_cast<std::uint64_t>(used.tv_nsec);
    }
    ::_exit(0);
}

worker_processes::~worker_processes() {
    stop();
    ::munmap(shared_state_, sizeof(shared_state));
}

std::uint64_t worker_processes::run_for(std::chrono::milliseconds duration) {
    shared_state_->is_started.store(true);
    std::this_thread::sleep_for(duration);
    std::uint64_t done = 0;
    for (const auto& each : shared_state_->workers)
        done += each.done.load(std::memory_order_relaxed);
    return std::max<std::uint64_t>(done, 1);
}

void worker_processes::stop() {
    shared_state_->is_started.store(true);
    shared_state_->is_over.store(true);
    for (const pid_t each : workers_)
        ::waitpid(each, nullptr, 0);
    workers_.clear();
}

double worker_processes::cpu_ns_per_operation() const {
    std::uint64_t cpu = 0;
    std::uint64_t all = 0;
    for (const auto& each : shared_state_->workers) {
        cpu += each.cpu_ns;
        all += each.done.load(std::memory_order_relaxed);
    }
    return static_cast<double>(cpu) / static_cast<double>(std::max<std::uint64_t>(all, 1));
}

double worker_processes::slowest_to_fastest() const {
    std::uint64_t least = ~std::uint64_t{0};
    std::uint64_t most = 1;
    for (unsigned process = 0; process != processes_; ++process) {
        const std::uint64_t done = shared_state_->workers[process].done.load(std::memory_order_relaxed);
        least = std::min(least, done);
        most = std::max(most, done);
    }
    return static_cast<double>(least) / static_cast<double>(most);
}

}  // namespace sluice::lock_benchmark
