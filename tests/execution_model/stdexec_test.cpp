// Features that only a real implementation has: algorithms over several senders, and its coroutine.
#include <gtest/gtest.h>
#include <exec/completion_behavior.hpp>
#include <exec/task.hpp>
#include <stdexec/execution.hpp>

#include <array>
#include <memory>
#include <string>
#include <thread>

#include "sluice/io/best_available.hpp"
#include "sluice/io/sender/execution.hpp"
#include "sluice/io/stream/pipe_handle.hpp"

SLUICE_EXECUTION_TRAITS(stdexec_traits, stdexec, stdexec, _tag);
struct stdexec_traits_with_behavior : stdexec_traits {
    template <class Signal>
    using get_completion_behavior = exec::get_completion_behavior_t<Signal>;
    static constexpr auto asynchronous = exec::completion_behavior::asynchronous;
};

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using bridge = execution_bridge<stdexec_traits_with_behavior>;

std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span(s));
}

using read_sender = decltype(bridge::as_sender(
    async_read(std::declval<io_handle&>(), std::declval<io_request<bytes_type>>())));
static_assert(stdexec::sender_in<read_sender, stdexec::env<>>);
static_assert(stdexec::sender_of<read_sender, stdexec::set_value_t(bytes_type)>);
static_assert(stdexec::sends_stopped<read_sender>);
static_assert(stdexec::scheduler<bridge::scheduler>);
static_assert(exec::get_completion_behavior<stdexec::set_value_t,
                                            decltype(std::declval<bridge::scheduler>().schedule())>() ==
              exec::completion_behavior::asynchronous);

class stdexec_test : public testing::Test {
public:
    void SetUp() override {
        for (auto& pipe : pipes) {
            ASSERT_TRUE(pipe.reader.set_multiplexer(multiplexer.get()).has_value());
            ASSERT_TRUE(pipe.writer.set_multiplexer(multiplexer.get()).has_value());
        }
        guard.emplace(*multiplexer);
        thread = std::thread([this] {
            while (multiplexer->run().value_or(0) > 0) {}
        });
    }
    void TearDown() override {
        guard.reset();
        thread.join();
    }

    auto read(std::size_t which) {
        return bridge::as_sender(async_read(pipes[which].reader, io_request<bytes_type>{into[which]}));
    }
    auto write(std::size_t which, std::string_view what) {
        return bridge::as_sender(async_write(pipes[which].writer, io_request<const_bytes_type>{text(what)}));
    }

    std::unique_ptr<io_multiplexer> multiplexer = best_available(1, 0).value();
    std::array<pipe_handle::pair, 2> pipes{pipe_handle::anonymous().value(),
                                           pipe_handle::anonymous().value()};
    std::array<std::array<std::byte, 16>, 2> into{};
    std::optional<io_multiplexer::work_guard> guard;
    std::thread thread;
};

TEST_F(stdexec_test, when_all_joins_reads_and_writes_of_two_pipes) {
    const auto got =
        stdexec::sync_wait(stdexec::when_all(read(0), read(1), write(0, "one"), write(1, "three")));
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(std::get<0>(*got).size(), 3U);
    EXPECT_EQ(std::get<1>(*got).size(), 5U);
    EXPECT_EQ(std::get<3>(*got).size(), 5U);
}

TEST_F(stdexec_test, an_error_in_when_all_cancels_an_endless_wait) {
    auto misdirected = bridge::as_sender(async_read(pipes[1].writer, io_request<bytes_type>{into[1]}));
    auto both = stdexec::when_all(read(0), std::move(misdirected))  //
                | stdexec::then([](bytes_type, bytes_type) noexcept { return 0; }) |
                stdexec::upon_error([](auto why) noexcept {
                    if constexpr (std::same_as<decltype(why), error>) {
                        return why.code();
                    } else {
                        return -1;  // an exception_ptr of when_all itself
                    }
                });
    EXPECT_EQ(std::get<0>(stdexec::sync_wait(std::move(both)).value()), EBADF);
}

TEST_F(stdexec_test, let_value_chains_a_write_and_the_read_of_it) {
    auto chain = write(0, "echo")  //
                 | stdexec::let_value([this](const_bytes_type&) noexcept { return read(0); }) |
                 stdexec::then([](bytes_type got) noexcept {
                     return std::string(reinterpret_cast<const char*>(got.data()), got.size());
                 });
    EXPECT_EQ(std::get<0>(stdexec::sync_wait(std::move(chain)).value()), "echo");
}

TEST_F(stdexec_test, starts_on_and_continues_on_move_work_to_the_loop) {
    const auto scheduler = bridge::get_scheduler(*multiplexer);
    const auto loop_thread = thread.get_id();
    auto there = stdexec::starts_on(scheduler, stdexec::just() | stdexec::then(std::this_thread::get_id));
    EXPECT_EQ(std::get<0>(stdexec::sync_wait(std::move(there)).value()), loop_thread);
    auto later = stdexec::just() | stdexec::continues_on(scheduler) | stdexec::then(std::this_thread::get_id);
    EXPECT_EQ(std::get<0>(stdexec::sync_wait(std::move(later)).value()), loop_thread);
}

TEST_F(stdexec_test, a_task_awaits_reads_writes_and_times) {
    auto talk = [](stdexec_test& self) -> exec::task<std::size_t> {
        std::size_t total = 0;
        for (int i = 0; i < 10; ++i) {
            co_await self.write(0, "ping");
            const bytes_type got = co_await self.read(0);
            total += got.size();
            co_await bridge::get_scheduler(*self.multiplexer).schedule_after(100us);
        }
        co_return total;
    };
    EXPECT_EQ(std::get<0>(stdexec::sync_wait(talk(*this)).value()), 40U);
}

TEST_F(stdexec_test, a_scope_is_joined_after_its_reads_are_stopped) {
    stdexec::counting_scope scope;
    std::atomic<int> stopped{0};
    for (std::size_t which = 0; which < 2; ++which) {
        stdexec::spawn(
            read(which)  //
                | stdexec::then([](bytes_type) noexcept {}) | stdexec::upon_error([](error) noexcept {}) |
                stdexec::upon_stopped([&]() noexcept { stopped.fetch_add(1, std::memory_order_relaxed); }),
            scope.get_token());
    }
    scope.request_stop();
    stdexec::sync_wait(scope.join());
    EXPECT_EQ(stopped.load(std::memory_order_relaxed), 2);
}

}  // namespace
}  // namespace sluice::io
