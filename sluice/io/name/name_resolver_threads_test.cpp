// Lookups on a multiplexer that several threads run. Runs under ThreadSanitizer.

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/loop/several_threads_testing.hpp"
#include "sluice/io/name/name_connect.hpp"
#include "sluice/io/name/name_resolver.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using test_kit::run_threads;

// Answers at once, or after a moment for a name that begins with "slow".
class answering final : public name_source {
public:
    explicit answering(const socket_address& with) : address_(with) {}

    addresses_result look_up(const std::string& host, std::uint16_t) noexcept override {
        if (host.starts_with("slow")) std::this_thread::sleep_for(200us);
        if (host == "nowhere") return failure(error::with_path(ENOENT, "look up", host));
        return std::vector{address_};
    }

private:
    socket_address address_;
};

class lookups_by_threads : public test_kit::several_threads {
protected:
    name_resolver resolver{
        {.threads_max = 3, .source = std::make_shared<answering>(socket_address::loopback_v4(7))}};
};
SLUICE_FOR_SEVERAL_THREADS(lookups_by_threads);

struct counts {
    std::atomic<int> found = 0;
    std::atomic<int> unknown = 0;
    std::atomic<int> ended = 0;

    void record(const addresses_result& came) noexcept {
        if (came.has_value()) {
            ++found;
        } else if (came.error() == std::errc::no_such_file_or_directory) {
            ++unknown;
        } else if (came.error() == std::errc::timed_out or came.error() == std::errc::operation_canceled) {
            ++ended;
        }
    }
    [[nodiscard]] int all() const noexcept { return found + unknown + ended; }
};

task<void> look_up(io_multiplexer& on, name_resolver& by, int i, counts& came) {
    constexpr std::array names{"host", "127.0.0.1", "slow host", "nowhere"};
    const host_and_port what{names[static_cast<std::size_t>(i) % names.size()], 7};
    const deadline within = i % 3 == 0 ? deadline(std::chrono::microseconds(i % 300)) : deadline();
    const auto addresses = co_await co_resolve(on, by, what, within);
    came.record(addresses);
}

TEST_P(lookups_by_threads, end_once_each_whichever_thread_checks) {
    constexpr int times = 400;
    counts came;
    const run_threads all(loop());
    sync_wait(loop(), [](io_multiplexer& on, name_resolver& by, counts& to) -> task<void> {
        task_group group(on);
        for (int i = 0; i < times; ++i) {
            group.spawn(look_up(on, by, i, to));
            if (i % 50 == 49) co_await group.join();  // no more than may wait for a thread
        }
        co_await group.join();
    }(loop(), resolver, came));
    EXPECT_EQ(came.all(), times);
    EXPECT_GE(came.found.load(), times / 4);
}

TEST_P(lookups_by_threads, end_when_their_scope_is_cancelled_on_another_thread) {
    counts came;
    const run_threads all(loop());
    for (int round = 0; round < 50; ++round) {
        cancel_scope scope;
        std::jthread canceller([&] {
            if (round % 2 == 0) std::this_thread::sleep_for(100us);
            scope.cancel();
        });
        sync_wait(loop(), in_scope(scope, look_up(loop(), resolver, 2, came)));
        canceller.join();
    }
    EXPECT_EQ(came.all(), 50);
}

TEST_P(lookups_by_threads, are_started_and_cancelled_by_any_thread_and_end_once) {
    struct receiver {
        counts* came;
        std::atomic<int>* dones;
        void set_value(addresses_result&& outcome) const noexcept { came->record(outcome); }
        void set_done() const noexcept { dones->fetch_add(1, std::memory_order_release); }
    };
    constexpr int times = 300;
    counts came;
    std::atomic<int> dones = 0;
    const run_threads all(loop());
    for (int i = 0; i < times; ++i) {
        auto state = connect(atomic(async_resolve(loop(), resolver, {i % 2 == 0 ? "slow" : "host", 7})),
                             receiver{&came, &dones});
        state.start();
        std::jthread canceller([&] { state.cancel(); });
        canceller.join();
        while (dones.load(std::memory_order_acquire) <= i)
            (void)state.poll();
        while (state.started()) {}
    }
    EXPECT_EQ(dones.load(), times);
    EXPECT_EQ(came.all(), times);
}

TEST_P(lookups_by_threads, are_followed_by_connects_of_several_threads) {
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    name_resolver to_listener({.source = std::make_shared<answering>(listener.local_address().value())});
    std::atomic<int> connected = 0;
    {
        const run_threads all(loop());
        std::vector<std::jthread> callers;
        for (int t = 0; t < test_kit::run_threads_count; ++t) {
            callers.emplace_back([&] {
                for (int i = 0; i < 10; ++i) {
                    const auto made =
                        sync_wait(loop(), co_connect_by_name(loop(), to_listener, {"host", 7}, {}, 10s));
                    if (made) ++connected;
                }
            });
        }
    }
    EXPECT_EQ(connected.load(), 10 * test_kit::run_threads_count);
}

TEST_P(lookups_by_threads, that_belong_to_a_connect_by_name_are_cancelled_by_another_thread) {
    struct receiver {
        std::atomic<int>* outcomes;
        std::atomic<int>* dones;
        void set_value(result<socket_handle>&& came) const noexcept {
            const bool is_expected = came.has_value() or came.error() == std::errc::operation_canceled;
            *outcomes += is_expected ? 1 : 0;
        }
        void set_done() const noexcept { dones->fetch_add(1, std::memory_order_release); }
    };
    constexpr int times = 100;
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    name_resolver to_listener({.source = std::make_shared<answering>(listener.local_address().value())});
    std::atomic<int> outcomes = 0;
    std::atomic<int> dones = 0;
    const run_threads all(loop());
    for (int i = 0; i < times; ++i) {
        auto state = connect(async_connect_by_name(loop(), to_listener, {i % 2 == 0 ? "slow" : "host", 7}),
                             receiver{&outcomes, &dones});
        state.start();
        std::jthread canceller([&] { state.cancel(); });
        canceller.join();
        while (dones.load(std::memory_order_acquire) <= i)
            std::this_thread::yield();
        while (state.started()) {}
    }
    EXPECT_EQ(outcomes.load(), times);
}

// Answers when the test allows it.
class hesitating final : public name_source {
public:
    std::atomic<bool> may_answer = false;

    addresses_result look_up(const std::string& host, std::uint16_t) noexcept override {
        may_answer.wait(false);
        return failure(error::with_path(ENOENT, "look up", host));
    }
};

// External work whose end cancels a connect by name, as a user's work may.
class cancelling_work final : public external_work {
public:
    std::function<void()> on_end;
    std::atomic<bool> has_begun = false;

private:
    [[nodiscard]] std::optional<int> begin(bool) noexcept override {
        has_begun = true;
        return std::nullopt;
    }
    void end() noexcept override {
        on_end();
        complete(ECANCELED);
    }
};

// With the lock of the scopes taken under that of the connect, each thread
// would wait for the other.
TEST_P(lookups_by_threads, that_belong_to_a_connect_are_cancelled_while_a_scope_is_that_cancels_them_too) {
    struct receiver {
        std::atomic<bool>* is_done;
        void set_value(result<socket_handle>&&) const noexcept {}
        void set_done() const noexcept { *is_done = true; }
    };
    const auto source = std::make_shared<hesitating>();
    name_resolver never({.source = source});
    const run_threads all(loop());
    for (int round = 0; round < 20; ++round) {
        std::atomic<bool> is_done = false;
        std::atomic<bool> is_ending = false;
        auto state = connect(async_connect_by_name(loop(), never, {"host", 7}), receiver{&is_done});
        state.start();
        cancelling_work work;
        std::optional<std::jthread> canceller;
        work.on_end = [&] {
            is_ending = true;
            for (int i = 0; i < 100; ++i)
                // While the other thread is in cancel(), if it is to show.
                std::this_thread::yield();
            state.cancel();
        };
        cancel_scope scope;
        canceller.emplace([&] {
            while (not is_ending.load())
                std::this_thread::yield();
            state.cancel();
        });
        std::jthread ender([&] {
            // Cancelled before it begins, the work would have no end.
            while (not work.has_begun.load())
                std::this_thread::yield();
            scope.cancel();
        });
        sync_wait(loop(), in_scope(scope, [](io_multiplexer& on, cancelling_work& what) -> task<void> {
                      (void)co_await test_kit::external_sender(on, what);
                  }(loop(), work)));
        canceller.reset();
        ender.join();
        while (not is_done.load())
            std::this_thread::yield();
        while (state.started()) {}
    }
    source->may_answer = true;
    source->may_answer.notify_all();
}

}  // namespace
}  // namespace sluice::io
