#include "tests/smb_simulation/world/simulated_workers.hpp"

#include <gtest/gtest.h>

#include "sluice/vfs/memory/memory_volume.hpp"
#include "tests/smb_simulation/world/slow_volume.hpp"

namespace sluice::smb_simulation {
namespace {

using namespace std::chrono_literals;

TEST(simulated_workers, carry_out_as_many_calls_at_once_as_there_are_threads) {
    simulated_clock clock;
    const auto began = clock.steady_now();
    loop_scheduler scheduler(1, clock);
    simulated_workers workers(scheduler, 2);
    int done = 0;
    scheduler.spawn("loop", [&] {
        for (int i = 0; i != 4; ++i)
            workers.submit([&]() noexcept {
                loop_scheduler::block_here(10s);
                ++done;
            });
        workers.stop();
        EXPECT_EQ(clock.steady_now(), began) << "the loop continues while they block";
    });
    scheduler.run();
    EXPECT_EQ(done, 4);
    EXPECT_EQ(clock.steady_now() - began, 20s);
}

TEST(slow_volume, takes_time_for_its_calls_on_workers_only) {
    simulated_clock clock;
    loop_scheduler scheduler(1, clock);
    simulated_workers workers(scheduler, 1);
    scheduler.spawn("loop", [&] {
        const auto loop = io::make_simulated_multiplexer({.clock = &clock, .sleeper = &scheduler}).value();
        slow_volume volume(std::make_unique<vfs::memory_volume>(*loop, clock), 1,
                           {.chance = 1000, .hung = 1000, .hung_for = 40s});
        const auto began = clock.steady_now();
        EXPECT_TRUE(volume.find("", vfs::follow_links::no));
        EXPECT_EQ(clock.steady_now(), began);
        bool is_found = false;
        workers.submit([&]() noexcept {
            is_found = volume.find("", vfs::follow_links::no).has_value();
            scheduler.wake(&is_found);
        });
        while (not is_found)
            (void)scheduler.park(&is_found);
        EXPECT_EQ(clock.steady_now() - began, 40s);
        workers.stop();
    });
    scheduler.run();
}

}  // namespace
}  // namespace sluice::smb_simulation
