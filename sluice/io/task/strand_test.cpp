#include "sluice/io/task/strand.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sluice/io/loop/several_threads_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/when_all.hpp"
#include "sluice/io/task/with_deadline.hpp"

// A strand, and the operations that coroutines wait for, on a multiplexer that several threads run.
// Runs under ThreadSanitizer.

namespace sluice::io {
namespace {

using namespace std::chrono_literals;

using test_kit::run_threads;
constexpr int threads = test_kit::run_threads_count;

class strands : public test_kit::several_threads {
protected:
    std::array<io_handle, 2> ends() {
        std::array<int, 2> made{};
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made.data()) != 0) std::abort();
        const auto adopt = [this](int descriptor) {
            io_handle end(native_handle{.descriptor = descriptor,
                                        .kind = handle_kind::socket,
                                        .readable = true,
                                        .writable = true,
                                        .stream = true});
            end.set_multiplexer(&loop()).value();
            return end;
        };
        return {adopt(made[0]), adopt(made[1])};
    }
};
SLUICE_FOR_SEVERAL_THREADS(strands);

TEST_P(strands, run_their_items_one_at_a_time_in_the_order_of_each_thread) {
    struct item final : posted_item {
        void invoke() noexcept override {
            if (not in->runs_here()) std::abort();
            (*log)[static_cast<std::size_t>(from)].push_back(number);  // unprotected
        }
        strand* in = nullptr;
        std::array<std::vector<int>, threads>* log = nullptr;
        int from = 0;
        int number = 0;
    };
    constexpr int each = 5'000;
    strand in(loop());
    std::array<std::vector<int>, threads> log;
    std::array<std::deque<item>, threads> items;
    {
        const run_threads all(loop());
        std::vector<std::jthread> posters;
        for (int t = 0; t < threads; ++t) {
            auto& own = items[static_cast<std::size_t>(t)];
            own.resize(each);
            posters.emplace_back([&, t] {
                for (int i = 0; i < each; ++i) {
                    auto& one = items[static_cast<std::size_t>(t)][static_cast<std::size_t>(i)];
                    one.in = &in;
                    one.log = &log;
                    one.from = t;
                    one.number = i;
                    in.post(one);
                }
            });
        }
    }
    for (const auto& own : log) {
        ASSERT_EQ(own.size(), static_cast<std::size_t>(each));
        for (int i = 0; i < each; ++i)
            ASSERT_EQ(own[static_cast<std::size_t>(i)], i);
    }
}

task<void> count_in(strand& in, int& unprotected, int times) {
    for (int i = 0; i < times; ++i) {
        co_await in.schedule();
        ++unprotected;
        co_await yield(in.multiplexer());
    }
}

TEST_P(strands, serialise_tasks_that_run_on_several_threads) {
    constexpr int times = 2'000;
    constexpr std::size_t tasks = 8;
    strand in(loop());
    int unprotected = 0;
    {
        const run_threads all(loop());
        std::vector<task<void>> counting;
        for (std::size_t i = 0; i < tasks; ++i)
            counting.push_back(count_in(in, unprotected, times));
        sync_wait(loop(), [](std::vector<task<void>> each) -> task<void> {
            co_await when_all(std::span(each));
        }(std::move(counting)));
    }
    EXPECT_EQ(unprotected, times * static_cast<int>(tasks));
}

struct serial_reader;
struct on_serial_read {
    serial_reader* self;
    void set_value(io_result<bytes_type>&& got) noexcept;
    void set_done() noexcept;
};
struct serial_reader {
    serial_reader(io_handle& from, strand& in, int& total_of, int times)
        : total(total_of),
          left(times),
          state(connect(async_read(from, io_request<bytes_type>{into}),
                        serialised<io_result<bytes_type>>(in, on_serial_read{this}))) {}

    int& total;
    int left;
    std::array<std::byte, 1> into{};
    io_operation_connection<transfer_sender<bytes_type>,
                            serialised_receiver<on_serial_read, io_result<bytes_type>>>
        state;
};
void on_serial_read::set_value(io_result<bytes_type>&& got) noexcept {
    if (got.has_value()) ++self->total;  // unprotected
}
void on_serial_read::set_done() noexcept {
    if (--self->left > 0) self->state.start();
}

TEST_P(strands, serialise_receivers_which_may_start_their_operation_again) {
    constexpr int times = 500;
    constexpr int readers = 4;
    strand in(loop());
    int total = 0;
    std::deque<std::array<io_handle, 2>> pairs;
    std::deque<serial_reader> all;
    {
        const run_threads running(loop());
        for (int i = 0; i < readers; ++i) {
            pairs.push_back(ends());
            all.emplace_back(pairs.back()[0], in, total, times);
            all.back().state.start();
        }
        const std::byte one{};
        for (int i = 0; i < times; ++i) {
            for (auto& pair : pairs) {
                if (::write(pair[1].native().descriptor, &one, 1) != 1) std::abort();
            }
        }
    }
    EXPECT_EQ(total, times * readers);
}

task<std::size_t> echo_back(io_handle& on, int times) {
    std::size_t total = 0;
    std::array<std::byte, 4> bytes{};
    for (int i = 0; i < times; ++i) {
        const auto got = co_await async_read(on, io_request<bytes_type>{bytes});
        if (not got) break;
        const auto sent = co_await async_write(on, io_request<const_bytes_type>{*got});
        if (not sent) break;
        total += sent->size();
    }
    co_return total;
}

task<std::size_t> ask(io_handle& on, int times) {
    std::size_t total = 0;
    std::array<std::byte, 4> bytes{};
    for (int i = 0; i < times; ++i) {
        const auto sent = co_await async_write(on, io_request<const_bytes_type>{bytes});
        if (not sent) break;
        std::size_t back = 0;
        while (back < bytes.size()) {
            const auto got = co_await async_read(on, io_request<bytes_type>{std::span(bytes).subspan(back)});
            if (not got or got->empty()) co_return total;
            back += got->size();
        }
        total += back;
    }
    co_return total;
}

TEST_P(strands, tasks_wait_for_io_and_resume_on_any_thread) {
    constexpr int times = 500;
    const run_threads all(loop());
    auto first = ends();
    auto second = ends();
    const auto both = sync_wait(loop(), [](auto& one, auto& two) -> task<std::size_t> {
        const auto [a, b, c, d] = co_await when_all(echo_back(one[0], times), ask(one[1], times),
                                                    echo_back(two[0], times), ask(two[1], times));
        co_return a + b + c + d;
    }(first, second));
    EXPECT_EQ(both, 4U * 4U * times);
}

TEST_P(strands, several_threads_sync_wait_on_one_multiplexer) {
    constexpr int times = 200;
    std::atomic<std::size_t> total = 0;
    {
        std::vector<std::jthread> waiting;
        for (int i = 0; i < threads; ++i) {
            waiting.emplace_back([&] {
                auto pair = ends();
                total += sync_wait(loop(), [](auto& own) -> task<std::size_t> {
                    const auto [a, b] = co_await when_all(echo_back(own[0], times), ask(own[1], times));
                    co_return a + b;
                }(pair));
            });
        }
    }
    EXPECT_EQ(total.load(), static_cast<std::size_t>(threads) * 2 * 4 * times);
}

task<int> read_with_deadline(io_multiplexer& on, io_handle& from, deadline within) {
    std::array<std::byte, 1> into{};
    const auto got = co_await with_deadline(
        on,
        [](io_handle& h, std::span<std::byte> room) -> task<result<std::size_t>> {
            const auto bytes = co_await async_read(h, io_request<bytes_type>{room});
            if (not bytes) co_return failure(bytes.error());
            co_return bytes->size();
        }(from, into),
        within);
    co_return got ? 0 : got.error().code();
}

TEST_P(strands, deadlines_end_tasks_while_their_io_may_complete) {
    const run_threads all(loop());
    auto pair = ends();
    EXPECT_EQ(sync_wait(loop(), read_with_deadline(loop(), pair[0], 1ms)), ETIMEDOUT);
    for (int i = 0; i < 100; ++i) {
        std::jthread peer([&] {
            const std::byte one{};
            if (::write(pair[1].native().descriptor, &one, 1) != 1) std::abort();
        });
        const int code = sync_wait(loop(), read_with_deadline(loop(), pair[0], 30us));
        EXPECT_TRUE(code == 0 or code == ETIMEDOUT) << code;
        peer.join();
        std::array<std::byte, 8> rest{};
        if (code != 0) (void)::recv(pair[0].native().descriptor, rest.data(), rest.size(), MSG_DONTWAIT);
    }
}

TEST_P(strands, a_group_of_tasks_is_cancelled_and_joined) {
    const run_threads all(loop());
    for (int round = 0; round < 20; ++round) {
        std::deque<std::array<io_handle, 2>> pairs;
        for (int i = 0; i < 8; ++i)
            pairs.push_back(ends());
        std::atomic<int> ended = 0;
        sync_wait(loop(), [](io_multiplexer& on, auto& each, std::atomic<int>& count) -> task<void> {
            task_group group(on);
            for (auto& pair : each) {
                group.spawn([](io_handle& from, std::atomic<int>& done) -> task<void> {
                    std::array<std::byte, 1> into{};
                    (void)co_await async_read(from, io_request<bytes_type>{into});
                    ++done;
                }(pair[0], count));
            }
            (void)co_await async_sleep(on, 1ms);
            group.cancel();
            co_await group.join();
        }(loop(), pairs, ended));
        EXPECT_EQ(ended.load(), 8);
    }
}

TEST_P(strands, a_race_has_one_winner) {
    const run_threads all(loop());
    for (int round = 0; round < 50; ++round) {
        auto pair = ends();
        auto other = ends();
        const std::byte one{};
        if (::write(pair[1].native().descriptor, &one, 1) != 1) std::abort();
        if (::write(other[1].native().descriptor, &one, 1) != 1) std::abort();
        const auto winner = sync_wait(loop(), [](auto& a, auto& b) -> task<std::size_t> {
            const auto read = [](io_handle& from) -> task<bool> {
                std::array<std::byte, 1> into{};
                co_return (co_await async_read(from, io_request<bytes_type>{into})).has_value();
            };
            std::vector<task<bool>> both;
            both.push_back(read(a[0]));
            both.push_back(read(b[0]));
            const std::size_t first = co_await race(std::span(both));
            co_return both[first].take_result() ? first : 99U;
        }(pair, other));
        EXPECT_LT(winner, 2U);
    }
}

}  // namespace
}  // namespace sluice::io
