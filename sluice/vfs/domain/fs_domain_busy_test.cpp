#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/vfs/domain/fs_domain.hpp"

// A processor that several threads share: calls take long because others run, not because of a
// disk.

namespace sluice::vfs {
namespace {

/// Threads that compute on the processor of the calling thread, which stays there as well.
class busy_processor {
public:
    busy_processor() {
        (void)::sched_getaffinity(0, sizeof before_, &before_);
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(::sched_getcpu(), &one);
        (void)::sched_setaffinity(0, sizeof one, &one);
        for (int i = 0; i != 3; ++i)
            threads_.emplace_back([this] {  // with the affinity of this thread
                while (not is_over_.load(std::memory_order_relaxed)) {}
            });
    }
    busy_processor(const busy_processor&) = delete;
    busy_processor& operator=(const busy_processor&) = delete;
    ~busy_processor() {
        is_over_.store(true, std::memory_order_relaxed);
        threads_.clear();
        (void)::sched_setaffinity(0, sizeof before_, &before_);
    }

private:
    cpu_set_t before_{};
    std::atomic<bool> is_over_{false};
    std::vector<std::jthread> threads_;
};

[[nodiscard]] std::uint64_t count_switches_of_thread() noexcept {
    rusage used{};
    (void)::getrusage(RUSAGE_THREAD, &used);
    return static_cast<std::uint64_t>(used.ru_nvcsw + used.ru_nivcsw);
}

// Returns whether calls that compute for about a millisecond are still inline after many of them.
bool stays_inline(std::uint64_t (*count_sleeps)() noexcept) {
    constexpr int calls = 400;
    const auto loop = io::make_epoll_multiplexer(0).value();
    const auto domain = std::make_shared<fs_domain>(
        fs_domain_options{.policy = call_policy::starts_inline, .count_sleeps = count_sleeps});
    const auto work = [](fs_domain& on, io::io_multiplexer& by) -> io::task<void> {
        for (int i = 0; i != calls and on.is_inline(); ++i)
            (void)co_await on.run(by, [] {
                struct stat found{};
                int is_there = 0;
                for (int j = 0; j != 1000; ++j)
                    is_there += ::stat("/", &found) == 0;
                return is_there;
            });
    };
    io::sync_wait(*loop, work(*domain, *loop));
    return domain->is_inline();
}

TEST(domain_on_a_busy_processor, stays_inline_because_its_calls_are_preempted_and_do_not_sleep) {
    const busy_processor busy;
    // A count that includes preemptions offloads the domain.
    if (stays_inline(count_switches_of_thread)) GTEST_SKIP() << "the calls were hardly ever preempted";
    EXPECT_TRUE(stays_inline(count_sleeps_of_thread));
}

}  // namespace
}  // namespace sluice::vfs
