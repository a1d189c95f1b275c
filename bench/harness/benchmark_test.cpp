#include "bench/harness/benchmark.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace sluice::bench {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct outcome {
    int status;
    std::vector<std::string> rows;
};

// Returns the standard output of a benchmark, by lines.
outcome run_with(benchmark& bench, std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "bench");
    testing::internal::CaptureStdout();
    const int status = bench.main(static_cast<int>(arguments.size()), arguments.data());
    const std::string text = testing::internal::GetCapturedStdout();
    outcome result{.status = status, .rows = {}};
    for (std::size_t start = 0, end; (end = text.find('\n', start)) != std::string::npos; start = end + 1)
        result.rows.push_back(text.substr(start, end - start));
    return result;
}

void busy_for(std::chrono::nanoseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {}
}

auto named(std::vector<std::string>& order, std::string name) {
    return [&order, name](run& r) { r.measure([&] { order.push_back(name); }); };
}

TEST(benchmark, the_repeats_are_interleaved_and_start_with_another_subject_each_round) {
    std::vector<std::string> order;
    benchmark bench("b", "?");
    bench.add({.name = "w"}).subject("limit", named(order, "l")).subject("sluice.x", named(order, "s"));
    run_with(bench, {"--quick"});
    EXPECT_THAT(order, ElementsAre("l", "s", "s", "l", "l", "s", "s", "l"));
}

TEST(benchmark, a_workload_may_have_fewer_repeats) {
    std::vector<std::string> order;
    benchmark bench("b", "?");
    bench.add({.name = "w", .repeats_max = 1}).subject("sluice.x", named(order, "x"));
    const outcome done = run_with(bench, {"--quick"});
    EXPECT_THAT(order, ElementsAre("x", "x")) << "one to warm up";
    EXPECT_THAT(done.rows, ElementsAre(HasSubstr("\"n\":1")));
}

TEST(benchmark, interleaved_subjects_do_their_operations_in_a_new_random_order_each_time) {
    std::string order;
    benchmark bench("b", "?");
    bench.add({.name = "w", .operations = 3}).subjects_in_turns({"limit", "sluice.x"}, [&](turns& both) {
        const auto noting = [&order](char who) {
            return [&order, who](std::uint64_t operations) { order.append(operations, who); };
        };
        const turns::turn of[] = {noting('l'), noting('x')};
        both.measure(of);
    });
    const outcome done = run_with(bench, {"--quick"});
    EXPECT_EQ(std::ranges::count(order, 'l'), std::ranges::count(order, 'x'));
    EXPECT_THAT(order, AllOf(HasSubstr("lllxxxlllxxx"), HasSubstr("xxxlllxxxlll")));
    EXPECT_THAT(done.rows, ElementsAre(HasSubstr("\"n\":40"), HasSubstr("\"ratio_to_limit\":")));
}

TEST(benchmark, naming_one_of_two_interleaved_subjects_runs_both_and_prints_that_one) {
    benchmark bench("b", "?");
    int begun = 0;
    bench.add({.name = "w"}).subjects_in_turns({"limit", "sluice.x"}, [&](turns& both) {
        ++begun;
        const turns::turn of[] = {[](std::uint64_t) { busy_for(std::chrono::microseconds(20)); },
                                  [](std::uint64_t) { busy_for(std::chrono::microseconds(200)); }};
        both.measure(of);
    });
    EXPECT_THAT(run_with(bench, {"--quick", "--only", "sluice.x"}).rows, ElementsAre(HasSubstr("sluice.x")));
    EXPECT_EQ(begun, 1);
    EXPECT_TRUE(run_with(bench, {"--only", "nothing"}).rows.empty());
    EXPECT_EQ(begun, 1);
}

TEST(benchmark, prints_one_row_per_subject_with_its_ratio_to_the_limit) {
    benchmark bench("b", "?");
    auto work = [](int us) {
        return [us](run& r) { r.measure([&] { busy_for(std::chrono::microseconds(us)); }); };
    };
    bench.add({.name = "w", .operations = 10}).subject("limit", work(100)).subject("sluice.x", work(100'000));
    const outcome done = run_with(bench, {"--quick"});
    EXPECT_EQ(done.status, 0);
    ASSERT_EQ(done.rows.size(), 2u);
    EXPECT_THAT(done.rows[0],
                AllOf(HasSubstr(R"("bench":"b","workload":"w","subject":"limit","metric":"time")"),
                      HasSubstr(R"("n":3,"cpu_ns_per_op":)"), Not(HasSubstr("ratio_to_limit"))));
    EXPECT_THAT(done.rows[1], HasSubstr(R"("subject":"sluice.x")"));
    EXPECT_THAT(done.rows[1], HasSubstr("\"ratio_to_limit\":"));
}

TEST(benchmark, only_chooses_by_a_part_of_the_subject_or_workload) {
    std::vector<std::string> order;
    benchmark bench("b", "?");
    bench.add({.name = "small"}).subject("limit", named(order, "")).subject("asio", named(order, ""));
    bench.add({.name = "large"}).subject("limit", named(order, "")).subject("asio", named(order, ""));
    EXPECT_EQ(run_with(bench, {"--quick", "--only", "larg"}).rows.size(), 2u);
}

TEST(benchmark, only_without_a_match_is_a_failure) {
    benchmark bench("b", "?");
    bench.add({.name = "w"}).subject("limit", [](run& r) { r.measure([] {}); });
    EXPECT_EQ(run_with(bench, {"--only", "nothing"}).status, 1);
}

TEST(benchmark, an_unknown_argument_is_a_usage_error_and_prints_no_row) {
    benchmark bench("b", "?");
    const outcome done = run_with(bench, {"--fast"});
    EXPECT_EQ(done.status, 2);
    EXPECT_TRUE(done.rows.empty());
}

TEST(benchmark, a_subject_that_is_skipped_has_no_row_and_fails_nothing) {
    benchmark bench("b", "?");
    bench.add({.name = "w"})
        .subject("limit", [](run& r) { r.measure([] {}); })
        .subject("sluice.uring", [](run& r) { r.skip("io_uring is denied"); });
    const outcome done = run_with(bench, {"--quick"});
    EXPECT_EQ(done.status, 0);
    EXPECT_EQ(done.rows.size(), 1u);
}

TEST(benchmark, a_subject_that_throws_fails_the_program_and_leaves_the_others_their_rows) {
    benchmark bench("b", "?");
    bench.add({.name = "w"}).subject("limit", [](run& r) { r.measure([] {}); }).subject("peer", [](run&) {
        throw std::runtime_error("no");
    });
    const outcome done = run_with(bench, {"--quick"});
    EXPECT_EQ(done.status, 1);
    EXPECT_EQ(done.rows.size(), 1u);
}

TEST(benchmark, percentiles_and_notes_become_fields) {
    benchmark bench("b", "?");
    bench.add({.name = "w", .operations = 1000}).subject("limit", [](run& r) {
        r.measure([&] {
            for (std::uint64_t i = 0; i < r.operations(); ++i)
                r.record(100);
        });
        r.note("wakeups", 7);
    });
    const outcome done = run_with(bench, {"--quick"});  // 3 repeats of 100 operations
    ASSERT_EQ(done.rows.size(), 1u);
    EXPECT_THAT(done.rows[0],
                AllOf(HasSubstr(R"("p50_ns":100,"p90_ns":100,"p99_ns":100,"max_ns":100,"wakeups":7})"),
                      Not(HasSubstr("p999_ns"))));
}

TEST(benchmark, counts_the_cpu_time_of_the_thread_the_subject_names) {
    benchmark bench("b", "?");
    bench.add({.name = "w", .metric = metric::cpu_per_operation}).subject("limit", [](run& r) {
        std::atomic<bool> stop{false};
        std::thread idle([&] {
            while (not stop.load(std::memory_order_relaxed))
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
        r.cpu_of(idle.native_handle());
        r.measure([] { busy_for(std::chrono::milliseconds(50)); });
        stop.store(true, std::memory_order_relaxed);
        idle.join();
    });
    const outcome done = run_with(bench, {"--quick"});
    ASSERT_EQ(done.rows.size(), 1u);
    const std::string& row = done.rows[0];
    const double cpu_ns = std::stod(row.substr(row.find("\"median\":") + 9));
    EXPECT_LT(cpu_ns, 40e6);  // the busy thread alone used 50 ms
}

TEST(benchmark, counts_the_cpu_time_reported_by_the_threads_of_a_subject) {
    benchmark bench("b", "?");
    bench.add({.name = "w", .metric = metric::cpu_per_operation, .operations = 100})
        .subject("limit", [](run& r) {
            r.measure([] { busy_for(std::chrono::milliseconds(1)); });
            r.cpu_spent(70);
        });
    const outcome done = run_with(bench, {"--quick"});  // 10 operations
    ASSERT_EQ(done.rows.size(), 1u);
    EXPECT_THAT(done.rows[0], HasSubstr(R"("median":7,"min":7,"max":7,"n":3,"cpu_ns_per_op":7)"));
}

TEST(benchmark, memory_is_the_value_reported_by_the_subject) {
    benchmark bench("b", "?");
    bench.add({.name = "w", .metric = metric::bytes}).subject("limit", [](run& r) { r.occupies(64); });
    const outcome done = run_with(bench, {"--quick"});
    ASSERT_EQ(done.rows.size(), 1u);
    EXPECT_THAT(done.rows[0], HasSubstr(R"("metric":"memory","unit":"B","better":"lower","median":64,)"));
}

TEST(benchmark, a_workload_of_a_series_prints_its_place_in_it) {
    benchmark bench("b", "?");
    bench.add({.name = "read_4", .series = {{.name = "read", .parameter = "threads", .value = 4}}})
        .subject("limit", [](run& r) { r.measure([] {}); });
    const outcome done = run_with(bench, {"--quick"});
    ASSERT_EQ(done.rows.size(), 1u);
    EXPECT_THAT(done.rows[0], HasSubstr(R"("series":"read","parameter":"threads","value":4,)"));
}

TEST(benchmark, throughput_counts_operations_and_bytes_per_second) {
    benchmark bench("b", "?");
    auto work = [](run& r) {
        r.measure([] { busy_for(std::chrono::milliseconds(2)); });
        r.did(2000);
    };
    bench.add({.name = "o", .metric = metric::operations_per_second}).subject("limit", work);
    bench.add({.name = "g", .metric = metric::gigabytes_per_second, .bytes_per_operation = 1000})
        .subject("limit", work);
    const outcome done = run_with(bench, {"--quick"});
    ASSERT_EQ(done.rows.size(), 2u);
    EXPECT_THAT(done.rows[0], HasSubstr(R"("metric":"throughput","unit":"op/s","better":"higher")"));
    const auto max_of = [](const std::string& row) {
        return std::stod(row.substr(row.find("\"max\":") + 6));
    };
    EXPECT_LE(max_of(done.rows[0]), 1'000'000.0);
    EXPECT_LE(max_of(done.rows[1]), 1.0);
    EXPECT_GT(max_of(done.rows[1]), 0.0);
}

}  // namespace
}  // namespace sluice::bench
