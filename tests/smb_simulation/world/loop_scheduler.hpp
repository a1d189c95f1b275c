#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <semaphore>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"

namespace sluice::smb_simulation {

/// Runs a program of several threads as on one CPU, and decides by a seed when to switch to another
/// thread: the loops of a server, and threads that make slow calls. One thread runs at a time.
/// Another one may be chosen at each switch point (`may_switch`, which the server calls when it has
/// unlocked a session or a file), and is chosen when the running thread has to wait. When all
/// threads wait, time advances to the next time for which one waits.
///
/// The same seed, and the same program, give the same run.
/// Thread safety: the thread that runs; run() that of the test. Allocates: per thread.
class loop_scheduler final : public io::simulation_sleeper {
public:
    using steady_time = clock_source::steady_time;
    static constexpr steady_time never = steady_time::max();

    loop_scheduler(std::uint64_t seed, simulated_clock& clock);
    loop_scheduler(const loop_scheduler&) = delete;
    loop_scheduler& operator=(const loop_scheduler&) = delete;
    ~loop_scheduler();

    /// Adds a thread, which begins when it is chosen. Call it before run(), or on a thread of the
    /// scheduler. Allocates: yes. A thread with `may_block` makes offloaded calls, which take time;
    /// a loop never does.
    void spawn(std::string_view name, std::function<void()> body, bool may_block = false);
    /// Lets the threads run until all have ended. Call it once.
    void run();

    /// Marks a switch point of the calling thread; no effect on a thread that does not belong to a
    /// scheduler.
    static void may_switch() noexcept;
    /// Returns whether the calling thread was spawned with `may_block`.
    [[nodiscard]] static bool may_block_here() noexcept;
    /// Lets simulated time pass for the calling thread, like a blocking call.
    static void block_here(clock_source::duration taken) noexcept;
    /// Blocks the calling thread until `*over` is true, which the thread that calls wake(over) has
    /// set; or until no event is possible in any thread.
    static void block_here_until(const bool* over) noexcept;
    /// Waits for wake(key), as for a condition variable; it may return without one. Returns false
    /// if no event is possible in any thread.
    bool park(const void* key) noexcept;

    [[nodiscard]] bool sleep(const void* loop, steady_time until,
                             std::span<pollfd> readiness) noexcept override;
    void wake(const void* loop) noexcept override;

    [[nodiscard]] std::uint64_t switches() const noexcept { return switches_; }
    /// Returns a hash of all decisions and their times.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
    /// Adds a value to the digest.
    void record(std::uint64_t word) noexcept;
    /// Returns the threads that waited for each other if all of them did; otherwise an empty
    /// string.
    [[nodiscard]] const std::string& stalled() const noexcept { return stalled_; }

private:
    enum class state : std::uint8_t { ready, waiting, ended };
    struct thread {
        std::string name;
        std::function<void()> body;
        std::binary_semaphore turn{0};
        state now = state::ready;
        steady_time until = never;
        std::span<pollfd> readiness{};
        const void* key = nullptr;
        bool may_block = false;
        bool was_stalled = false;
        std::jthread runs{};
    };

    bool wait(const void* key, steady_time until, std::span<pollfd> readiness) noexcept;
    void mark_ready_ones() noexcept;
    [[nodiscard]] thread* choose() noexcept;
    void hand_turn_to(thread& next) noexcept;
    [[nodiscard]] bool let_time_pass() noexcept;
    void report_stall() noexcept;
    void end_current() noexcept;

    static inline thread_local constinit loop_scheduler* of_this_thread_ = nullptr;

    seeded_random random_;
    simulated_clock& clock_;
    std::vector<std::unique_ptr<thread>> threads_;
    thread* current_ = nullptr;
    std::binary_semaphore all_ended_{0};
    std::vector<pollfd> asked_;
    std::uint64_t until_switch_ = 0;
    std::uint64_t switches_ = 0;
    std::uint64_t digest_ = 0xcbf2'9ce4'8422'2325;  // FNV-1a
    std::string stalled_;
    std::uint64_t switch_period_;
};

}  // namespace sluice::smb_simulation
