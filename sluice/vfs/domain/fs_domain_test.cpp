#include "sluice/vfs/domain/fs_domain.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/gate_testing.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::vfs {
namespace {

using std::this_thread::get_id;

using gate = gate_for_testing;

class domains : public testing::Test {
protected:
    using id = std::thread::id;

    static std::shared_ptr<fs_domain> make(call_policy policy, std::size_t threads_max = 8) {
        return std::make_shared<fs_domain>(
            fs_domain_options{.name = "tested", .policy = policy, .threads = {.threads_max = threads_max}});
    }
    template <class T>
    T run(io::task<T> root) {
        return io::sync_wait(*loop_, std::move(root));
    }
    static io::task<id> where(fs_domain& domain, io::io_multiplexer& loop) {
        co_return co_await domain.run(loop, [] { return get_id(); });
    }
    static io::task<void> pass(fs_domain& domain, io::io_multiplexer& loop, gate& through) {
        (void)co_await domain.run(loop, [&] {
            through.pass();
            return 0;
        });
    }
    // Returns -1 if the call was cancelled.
    static io::task<void> number(fs_domain& domain, io::io_multiplexer& loop, io::call_cancellation& by,
                                 int given, int& got) {
        got = (co_await domain.run(loop, by, [given] { return given; })).value_or(-1);
    }
    void finish(io::task_group& group) {
        while (group.size() != 0)
            (void)loop_->run();
    }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer(0).value();
};

TEST_F(domains, inline_call_runs_on_the_loop_and_the_watchdog_sees_it) {
    const auto domain = make(call_policy::starts_inline);
    EXPECT_EQ(run(where(*domain, *loop_)), get_id());
    const auto seen = run([](fs_domain& on, io::io_multiplexer& loop) -> io::task<std::uint32_t> {
        co_return co_await on.run(loop, [&] {
            EXPECT_EQ(fs_domain::of_this_call(), &on);
            return inline_call_slot::of_this_thread().now().domain;
        });
    }(*domain, *loop_));
    EXPECT_EQ(seen, domain->number());
    EXPECT_EQ(inline_call_slot::of_this_thread().now(), inline_call_slot::running_call{});
    EXPECT_EQ(domain->statistics().threads, 0U);
}

TEST_F(domains, successive_inline_calls_differ_to_the_watchdog) {
    inline_call_slot slot;
    slot.begin(7);
    const auto first = slot.now();
    slot.end();
    slot.begin(7);
    EXPECT_NE(slot.now(), first);
    EXPECT_EQ(slot.now().domain, 7U);
}

TEST_F(domains, offloaded_call_runs_on_a_worker_of_its_own_domain_and_returns_to_the_loop) {
    const auto one = make(call_policy::never_inline, 1);
    const auto other = make(call_policy::starts_offloaded, 1);
    const id there = run(where(*one, *loop_));
    EXPECT_NE(there, get_id());
    EXPECT_EQ(run(where(*one, *loop_)), there);
    EXPECT_NE(run(where(*other, *loop_)), there);
}

TEST_F(domains, eight_hung_calls_of_one_domain_delay_no_call_of_another) {
    const auto hung = make(call_policy::never_inline);
    const auto other = make(call_policy::never_inline);
    gate shut;
    io::task_group group(*loop_);
    for (int i = 0; i != 9; ++i)
        group.spawn(pass(*hung, *loop_, shut));
    shut.await(8);
    EXPECT_NE(run(where(*other, *loop_)), get_id());
    EXPECT_EQ(hung->statistics().running, 8U);
    EXPECT_EQ(hung->statistics().queued, 1U);
    EXPECT_TRUE(hung->has_stuck_calls());
    shut.open();
    finish(group);
    EXPECT_FALSE(hung->has_stuck_calls());
}

TEST_F(domains, cancelled_call_that_has_not_begun_never_begins) {
    const auto domain = make(call_policy::never_inline, 1);
    gate shut;
    io::call_cancellation cancelled;
    io::call_cancellation kept;
    int first = 0;
    int second = 0;
    int third = 0;
    io::task_group group(*loop_);
    group.spawn(pass(*domain, *loop_, shut));
    shut.await(1);
    group.spawn(number(*domain, *loop_, cancelled, 1, first));
    group.spawn(number(*domain, *loop_, kept, 2, second));
    cancelled.cancel();
    EXPECT_EQ(first, 0) << "a cancellation must not resume a coroutine";
    (void)loop_->run();
    EXPECT_EQ(first, -1);
    EXPECT_EQ(domain->statistics().queued, 1U);
    group.spawn(number(*domain, *loop_, cancelled, 3, third));
    EXPECT_EQ(third, -1) << "a call requested after the cancellation does not begin either";
    shut.open();
    finish(group);
    EXPECT_EQ(second, 2);
}

TEST_F(domains, cancellation_leaves_a_running_call_alone) {
    const auto domain = make(call_policy::never_inline, 1);
    gate shut;
    io::call_cancellation late;
    int got = 0;
    io::task_group group(*loop_);
    group.spawn([](fs_domain& on, io::io_multiplexer& loop, io::call_cancellation& by, gate& through,
                   int& result) -> io::task<void> {
        result = (co_await on.run(loop, by, [&] {
                     through.pass();
                     return 5;
                 })).value_or(-1);
    }(*domain, *loop_, late, shut, got));
    shut.await(1);
    late.cancel();
    shut.open();
    finish(group);
    EXPECT_EQ(got, 5);
}

TEST_F(domains, cancelled_inline_call_does_not_run) {
    const auto domain = make(call_policy::always_inline);
    io::call_cancellation cancelled;
    cancelled.cancel();
    int got = 0;
    run(number(*domain, *loop_, cancelled, 1, got));
    EXPECT_EQ(got, -1);
}

// Records where and when it is destroyed.
class recorded final : public discardable {
public:
    recorded(std::vector<std::thread::id>& where, std::atomic<int>& count, gate* until) noexcept
        : where_(where), count_(count), until_(until) {}
    ~recorded() override {
        if (until_ != nullptr) until_->pass();
        where_.push_back(get_id());
        ++count_;
        count_.notify_all();
    }

private:
    std::vector<std::thread::id>& where_;
    std::atomic<int>& count_;
    gate* until_;
};

TEST_F(domains, discarding_destroys_inline_or_on_a_worker_without_waiting) {
    std::vector<id> where;
    std::atomic<int> count{0};
    const auto quick = make(call_policy::starts_inline, 1);
    quick->discard(std::make_unique<recorded>(where, count, nullptr));
    ASSERT_EQ(where.size(), 1U);
    EXPECT_EQ(where[0], get_id());

    const auto slow = make(call_policy::never_inline, 1);
    gate shut;
    auto needs = std::make_shared<int>(0);
    const std::weak_ptr<int> volume = needs;
    slow->discard(std::make_unique<recorded>(where, count, &shut), std::move(needs));
    shut.await(1);
    EXPECT_FALSE(volume.expired());
    EXPECT_EQ(count, 1);
    shut.open();
    count.wait(1);
    EXPECT_NE(where.at(1), get_id());
}

TEST_F(domains, slow_discards_run_on_a_worker_of_an_inline_domain) {
    std::vector<id> where;
    std::atomic<int> count{0};
    const auto quick = make(call_policy::starts_inline, 1);
    quick->discard(std::make_unique<recorded>(where, count, nullptr), {}, fs_domain::offloaded::yes);
    count.wait(0);
    EXPECT_NE(where.at(0), get_id());
}

TEST_F(domains, destruction_carries_out_queued_discards) {
    std::vector<id> where;
    std::atomic<int> count{0};
    {
        const auto slow = make(call_policy::never_inline, 1);
        for (int i = 0; i != 3; ++i)
            slow->discard(std::make_unique<recorded>(where, count, nullptr));
    }
    EXPECT_EQ(count, 3);
}

TEST_F(domains, last_owner_of_a_domain_may_be_discarded_on_its_own_worker) {
    std::vector<id> where;
    std::atomic<int> count{0};
    auto domain = make(call_policy::never_inline, 1);
    fs_domain& itself = *domain;
    gate shut;
    itself.discard(std::make_unique<recorded>(where, count, &shut), domain);
    shut.await(1);
    domain.reset();
    shut.open();
    count.wait(0);
    EXPECT_EQ(where.size(), 1U);
}

TEST_F(domains, destruction_abandons_a_stuck_call) {
    static std::vector<id> where;  // static: a stuck call may refer to it until the process ends
    static std::atomic<int> count{0};
    static gate shut;
    {
        const auto hung = std::make_shared<fs_domain>(
            fs_domain_options{.name = "hung",
                              .policy = call_policy::never_inline,
                              .threads = {.threads_max = 2, .stop_wait_max = std::chrono::nanoseconds(1)}});
        hung->discard(std::make_unique<recorded>(where, count, &shut));
        shut.await(1);
    }
    EXPECT_EQ(count, 0);
    shut.open();
    count.wait(0);
}

TEST_F(domains, figures_give_the_age_of_the_oldest_running_call) {
    simulated_clock clock;
    const auto domain =
        std::make_shared<fs_domain>(fs_domain_options{.name = "share one",
                                                      .policy = call_policy::never_inline,
                                                      .threads = {.threads_max = 2, .clock = &clock}});
    EXPECT_EQ(domain->name(), "share one");
    gate shut;
    io::task_group group(*loop_);
    group.spawn(pass(*domain, *loop_, shut));
    shut.await(1);
    clock.advance(std::chrono::seconds(3));
    group.spawn(pass(*domain, *loop_, shut));
    shut.await(2);
    clock.advance(std::chrono::seconds(4));
    const io::call_statistics now = domain->statistics();
    EXPECT_EQ(now.oldest_age, std::chrono::seconds(7));
    EXPECT_EQ(now.running, 2U);
    shut.open();
    finish(group);
    EXPECT_EQ(domain->statistics().oldest_age, std::chrono::seconds(0));
}

TEST_F(domains, several_loops_share_a_domain) {
    constexpr int calls = 300;
    std::vector<std::unique_ptr<io::io_multiplexer>> loops;
    for (int i = 0; i != 3; ++i)
        loops.push_back(io::make_epoll_multiplexer(0).value());
    const auto domain =
        make(call_policy::never_inline, 3);  // destroyed before the loops that its workers wake
    const auto work = [](fs_domain& on, io::io_multiplexer& loop) -> io::task<int> {
        int right = 0;
        const id home = get_id();
        for (int i = 0; i != calls; ++i) {
            io::call_cancellation by;
            const std::optional<int> got = co_await on.run(loop, by, [i] { return i; });
            right += got == i and get_id() == home ? 1 : 0;
        }
        co_return right;
    };
    std::vector<std::thread> others;
    std::atomic<int> right{0};
    for (const auto& loop : loops)
        others.emplace_back([&] { right += io::sync_wait(*loop, work(*domain, *loop)); });
    for (std::thread& each : others)
        each.join();
    EXPECT_EQ(right, 3 * calls);
}

}  // namespace
}  // namespace sluice::vfs
