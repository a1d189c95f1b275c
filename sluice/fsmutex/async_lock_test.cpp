#include "sluice/fsmutex/async_lock.hpp"

#include "sluice/fsmutex/conformance_testing.hpp"
#include "sluice/io/sync_wait.hpp"
#include "sluice/io/task_group.hpp"
#include "sluice/io/with_deadline.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;

class every_async_lock : public on_each_algorithm {
protected:
    std::unique_ptr<io::io_multiplexer> loop = io::best_available().value();
    std::unique_ptr<shared_fs_mutex> mutex = open();
};

io::task<void> unlock_later(io::io_multiplexer& loop, fs_mutex_guard held) {
    (void)co_await io::co_sleep(loop, 20ms);
    held.unlock();
}

struct outcome {
    std::optional<result<fs_mutex_guard>> value;
    bool is_done = false;
};
struct receiver {
    outcome* to;
    void set_value(result<fs_mutex_guard> got) noexcept { to->value.emplace(std::move(got)); }
    void set_done() noexcept { to->is_done = true; }
};

TEST_P(every_async_lock, is_granted_to_a_coroutine_that_suspends_meanwhile) {
    auto held = mutex->lock(entity(1)).value();
    auto both = io::sync_wait(*loop,
                              [](io::io_multiplexer& on, shared_fs_mutex& wanted,
                                 fs_mutex_guard first) -> io::task<result<fs_mutex_guard>> {
                                  io::task_group others(on);
                                  others.spawn(unlock_later(on, std::move(first)));
                                  std::vector<entity> entities{entity(1), entity(2)};
                                  auto got = co_await co_lock(on, wanted, entities);
                                  co_await others.join();
                                  co_return got;
                              }(*loop, *mutex, std::move(held)));
    ASSERT_TRUE(both) << both.error().message();
    EXPECT_FALSE(mutex->try_lock(entity(2)));
}

TEST_P(every_async_lock, keeps_its_deadline_and_gives_up_its_place) {
    auto held = mutex->lock(entity(1)).value();
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(io::sync_wait(*loop, co_lock(*loop, *mutex, {entity(1), entity(2)}, 30ms)).error(),
              std::errc::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 30ms);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
    held.unlock();
    EXPECT_TRUE(mutex->try_lock(entity(1)));
}

TEST_P(every_async_lock, ends_when_cancelled_and_gives_up_its_place) {
    auto held = mutex->lock(entity(1)).value();
    const auto got =
        io::sync_wait(*loop, io::with_deadline(*loop, co_lock(*loop, *mutex, {entity(1), entity(2)}), 20ms));
    EXPECT_EQ(got.error(), std::errc::timed_out);
    EXPECT_TRUE(mutex->try_lock(entity(2)));
}

TEST_P(every_async_lock, as_a_sender_tells_its_receiver_once) {
    auto held = mutex->lock(entity(1)).value();
    outcome late;
    auto waiting = connect(async_lock(*loop, *mutex, {entity(1)}), receiver{&late});
    waiting.start();
    EXPECT_FALSE(late.value);
    (void)loop->timeout_io_within(10ms);
    EXPECT_FALSE(late.is_done);
    held.unlock();
    while (not late.is_done)
        (void)loop->timeout_io_within(10ms);
    EXPECT_TRUE(*late.value);
    outcome refused;
    auto timed = connect(async_lock(*loop, *mutex, {entity(1)}, 10ms), receiver{&refused});
    timed.start();
    while (not refused.is_done)
        (void)loop->timeout_io_within(10ms);
    EXPECT_EQ(refused.value->error(), std::errc::timed_out);
}

SLUICE_ON_EACH_ALGORITHM(every_async_lock);

}  // namespace
}  // namespace sluice::fsmutex
