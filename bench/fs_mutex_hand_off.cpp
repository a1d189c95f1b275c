// Locks between processes: the time from the release of a lock until a sleeping request has it. By
// a thread that waits, and by a coroutine, whose loop must not.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/benchmark.hpp"
#include "sluice/fsmutex/async_lock.hpp"
#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/byte_ranges.hpp"
#include "sluice/fsmutex/lock_files.hpp"
#include "sluice/fsmutex/memory_map.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/path_handle.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::bench {
namespace {

using fsmutex::algorithm;
using fsmutex::entity;
using fsmutex::fs_mutex_guard;
using fsmutex::shared_fs_mutex;
using std::chrono::steady_clock;

// The time for which the lock is held. By then all waiters that stay awake for a moment sleep, and
// polling ones have their longest pauses.
constexpr auto held_for = std::chrono::milliseconds(20);

std::unique_ptr<shared_fs_mutex> open(algorithm which, const std::string& directory) {
    const auto base = io::path_handle::open(directory).value();
    const std::string name = "hand_off_" + std::string(fsmutex::name_of(which));
    switch (which) {
        case algorithm::lock_files:
            return fsmutex::lock_files::open(base, name).value();
        case algorithm::byte_ranges:
            return fsmutex::byte_ranges::open(base, name).value();
        case algorithm::atomic_append:
            return fsmutex::atomic_append::open(base, name).value();
        case algorithm::memory_map:
            return fsmutex::memory_map::open(base, name).value();
    }
    std::abort();
}

// The two threads alternate: an odd number is the waiter's turn.
class turns_of_two {
public:
    void wait_for(unsigned turn) const noexcept {
        for (unsigned now = turn_.load(std::memory_order_acquire); now != turn;
             now = turn_.load(std::memory_order_acquire))
            turn_.wait(now, std::memory_order_acquire);
    }
    void begin(unsigned turn) noexcept {
        turn_.store(turn, std::memory_order_release);
        turn_.notify_all();
    }

private:
    std::atomic<unsigned> turn_ = 0;
};

// Acquires the lock, calls `granted`, and releases the lock.
using waiter = std::function<void(const std::function<void()>& granted)>;

// `lock` and `unlock` are the holder's.
void transfer_lock(run& repeat, const std::function<void()>& lock, const std::function<void()>& unlock,
                   const std::function<waiter()>& make_waiter) {
    turns_of_two turns;
    const auto rounds = static_cast<unsigned>(repeat.operations());
    std::atomic<steady_clock::duration> released{};
    std::jthread waits([&] {
        const waiter take = make_waiter();
        for (unsigned round = 0; round != rounds; ++round) {
            turns.wait_for(2 * round + 1);
            take([&] {
                const auto now = steady_clock::now().time_since_epoch();
                repeat.record(static_cast<std::uint64_t>(
                    std::chrono::nanoseconds(now - released.load(std::memory_order_acquire)).count()));
            });
            turns.begin(2 * round + 2);
        }
    });
    repeat.measure([&] {
        for (unsigned round = 0; round != rounds; ++round) {
            lock();
            turns.begin(2 * round + 1);
            std::this_thread::sleep_for(held_for);
            released.store(steady_clock::now().time_since_epoch(), std::memory_order_release);
            unlock();
            turns.wait_for(2 * round + 2);
        }
    });
}

waiter in_a_thread(algorithm which, const std::string& directory) {
    return [mutex = std::shared_ptr(open(which, directory))](const std::function<void()>& granted) {
        const auto held = mutex->lock(entity(1)).value();
        granted();
    };
}

waiter in_a_coroutine(algorithm which, const std::string& directory, std::unique_ptr<io::io_multiplexer> on) {
    return [mutex = std::shared_ptr(open(which, directory)),
            loop = std::shared_ptr(std::move(on))](const std::function<void()>& granted) {
        const auto held = io::sync_wait(*loop, fsmutex::co_lock(*loop, *mutex, {entity(1)})).value();
        granted();
    };
}

// A futex without a lock: the time to wake a sleeping thread.
void add_limit(workload& work) {
    work.subject("limit", [](run& repeat) {
        std::atomic<unsigned> word = 0;
        transfer_lock(
            repeat, [&] { word = 1; },
            [&] {
                word = 0;
                word.notify_all();
            },
            [&] {
                return [&](const std::function<void()>& granted) {
                    while (word.load() != 0)
                        word.wait(1);
                    granted();
                };
            });
    });
}

void add_algorithm(benchmark& all, const std::string& volume, const std::string& directory, algorithm which) {
    auto& work = all.add({.name = volume + "_" + std::string(fsmutex::name_of(which)),
                          .metric = metric::cpu_per_operation,
                          .operations = 30});
    add_limit(work);
    const auto add = [&](const std::string& name, const std::function<waiter()>& make_waiter) {
        work.subject(name, [=](run& repeat) {
            const auto mutex = open(which, directory);
            fs_mutex_guard held;
            transfer_lock(
                repeat, [&] { held = mutex->lock(entity(1)).value(); }, [&] { held.unlock(); }, make_waiter);
        });
    };
    add("sluice.blocking", [=] { return in_a_thread(which, directory); });
    add("sluice.coroutine.epoll",
        [=] { return in_a_coroutine(which, directory, io::make_epoll_multiplexer().value()); });
    if (io::try_uring())
        add("sluice.coroutine.io_uring",
            [=] { return in_a_coroutine(which, directory, io::make_uring_multiplexer().value()); });
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
    using namespace sluice::bench;
    benchmark all("fs_mutex_hand_off",
                  "How long does it take from the release of a lock until a sleeping request has it?");
    const char* const chosen = std::getenv("TMPDIR");
    const std::string disk = chosen != nullptr ? chosen : ".";
    for (const auto& [volume, directory] :
         {std::pair<std::string, std::string>{"disk", disk}, {"memory", "/dev/shm"}})
        for (const algorithm which :
             {algorithm::memory_map, algorithm::atomic_append, algorithm::byte_ranges, algorithm::lock_files})
            add_algorithm(all, volume, directory, which);
    return all.main(argc, argv);
}
