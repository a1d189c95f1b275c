#include "sluice/cli/serve/proc_thread_usage.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <future>
#include <thread>

namespace sluice::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view stat_of_one =
    "7 (loop) S 1 7 7 0 -1 4194304 122 0 0 0 150 25 0 0 20 0 1 0 2911485 0 0\n";

TEST(thread_stat, has_the_state_and_the_cpu_time_of_a_thread) {
    const auto usage = decode_thread_stat(stat_of_one, 100);
    ASSERT_TRUE(usage);
    EXPECT_FALSE(usage->is_runnable);
    EXPECT_EQ(usage->cpu_time, 1750ms);
}

TEST(thread_stat, has_its_fields_found_after_a_name_with_spaces_and_parentheses) {
    std::string text(stat_of_one);
    text.replace(0, text.find(" S "), "7 (a) S (b c)");
    text.replace(text.rfind(" S "), 3, " R ");
    const auto usage = decode_thread_stat(text, 100);
    ASSERT_TRUE(usage);
    EXPECT_TRUE(usage->is_runnable);
    EXPECT_EQ(usage->cpu_time, 1750ms);
}

TEST(thread_stat, of_another_form_is_rejected) {
    for (const std::string_view text :
         {"", "7 (loop", "7 (loop) S 1 7", "7 (loop) S 1 7 7 0 -1 4 1 0 0 0 x 25 0"})
        EXPECT_FALSE(decode_thread_stat(text, 100)) << text;
    EXPECT_FALSE(decode_thread_stat(stat_of_one, 0));
}

TEST(proc_thread_usage, distinguishes_a_thread_that_sleeps_in_a_call_from_one_that_computes) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    std::promise<pid_t> asleep;
    std::thread sleeper([&] {
        asleep.set_value(::gettid());
        char byte = 0;
        EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    });
    const pid_t thread = asleep.get_future().get();
    proc_thread_usage threads;
    while (threads.of(thread).value().is_runnable)
        std::this_thread::yield();

    const auto before = threads.of(::gettid());
    ASSERT_TRUE(before);
    EXPECT_TRUE(before->is_runnable) << "it makes the query";
    while (threads.of(::gettid())->cpu_time == before->cpu_time) {}
    EXPECT_EQ(::write(ends[1], "x", 1), 1);
    sleeper.join();
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(proc_thread_usage, knows_nothing_of_a_thread_that_does_not_exist) {
    proc_thread_usage threads;
    EXPECT_FALSE(threads.of(1 << 30));
}

}  // namespace
}  // namespace sluice::cli
