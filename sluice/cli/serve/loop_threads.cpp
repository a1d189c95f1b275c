#include "sluice/cli/serve/loop_threads.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "sluice/io/best_available.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"
#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/task/frame_pool.hpp"

namespace sluice::cli {

std::size_t usable_processors() noexcept {
    cpu_set_t usable;
    // More CPUs than the set has room for.
    if (sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&usable)));
}

namespace {

void run_to_the_end(io::io_multiplexer& loop) noexcept {
    for (;;) {
        const auto ran = loop.run();
        if (not ran)
            io::report_unreturned(io::unreturned_failure::loop_cannot_run, ran.error().message().c_str());
        if (ran == io::io_multiplexer::nothing_pending) return;
    }
}

}  // namespace

result<std::unique_ptr<loop_threads>> loop_threads::start(std::size_t count) {
    std::unique_ptr<loop_threads> all(new loop_threads);
    for (std::size_t i = 0; i != count; ++i) {
        auto made = io::best_available();
        if (not made) return failure(made.error());
        all->threads_.push_back(std::make_unique<loop_thread>(*std::move(made)));
        loop_thread& fresh = *all->threads_.back();
        all->loops_.push_back(fresh.multiplexer.get());
        try {
            fresh.runner = std::thread([&loop = *fresh.multiplexer, &activity = fresh.activity] {
                const smb::server::loop_activity::use watched(activity, ::gettid());
                io::frame_pool frames(frame_pool_bytes);
                const io::frame_pool::use from_pool(frames);
                const io::sigpipe_guard no_sigpipe;
                run_to_the_end(loop);
            });
        } catch (const std::system_error& why) {
            return failure({why.code().value(), "start a thread"});
        }
    }
    return all;
}

std::vector<const smb::server::loop_activity*> loop_threads::activities() const {
    std::vector<const smb::server::loop_activity*> all;
    for (const auto& each : threads_)
        all.push_back(&each->activity);
    return all;
}

loop_threads::~loop_threads() {
    for (const auto& each : threads_)
        each->until_end.reset();
    for (const auto& each : threads_)
        if (each->runner.joinable()) each->runner.join();
}

}  // namespace sluice::cli
