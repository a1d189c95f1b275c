#include "bench/harness/allocation_counter.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "bench/harness/benchmark.hpp"

namespace sluice::bench {
namespace {

#ifndef __has_feature
#define __has_feature(x) 0
#endif

// Keeps the optimiser from removing an unused allocation.
void keep(void* block) {
    asm volatile("" : : "g"(block) : "memory");
}

template <class Action>
std::uint64_t allocations_in(Action action) {
    const std::uint64_t before = allocations();
    action();
    return allocations() - before;
}

TEST(allocation_counter, sees_malloc_and_its_family) {
    EXPECT_EQ(allocations_in([] {
                  void* block = std::malloc(10);
                  keep(block);
                  std::free(block);
              }),
              1u);
    EXPECT_EQ(allocations_in([] {
                  void* block = std::calloc(3, 10);
                  keep(block);
                  std::free(block);
              }),
              1u);
}

TEST(allocation_counter, sees_aligned_allocations) {
#if __has_feature(thread_sanitizer)
    GTEST_SKIP() << "TSan does not report these";
#endif
    EXPECT_EQ(allocations_in([] {
                  void* block = std::aligned_alloc(64, 128);
                  keep(block);
                  std::free(block);
              }),
              1u);
    EXPECT_EQ(allocations_in([] {
                  void* block = nullptr;
                  EXPECT_EQ(posix_memalign(&block, 64, 128), 0);
                  keep(block);
                  std::free(block);
              }),
              1u);
}

TEST(allocation_counter, sees_operator_new_also_for_aligned_types) {
    struct alignas(128) wide {
        char bytes[128];
    };
    EXPECT_EQ(allocations_in([] { keep(std::make_unique<int>(1).get()); }), 1u);
    EXPECT_EQ(allocations_in([] { keep(std::make_unique<wide>().get()); }), 1u);
}

TEST(allocation_counter, does_not_count_code_that_only_frees_or_computes) {
    auto* value = new int(3);
    keep(value);
    EXPECT_EQ(allocations_in([&] { delete value; }), 0u);
    EXPECT_EQ(allocations_in([] { keep(nullptr); }), 0u);
}

TEST(allocation_counter, counts_every_thread) {
    constexpr unsigned thread_count = 4;
    constexpr unsigned each = 1000;
    std::vector<std::thread> threads;
    const std::uint64_t before = allocations();
    for (unsigned i = 0; i < thread_count; ++i)
        threads.emplace_back([] {
            for (unsigned n = 0; n < each; ++n)
                keep(std::make_unique<int>(1).get());
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_GE(allocations() - before, thread_count * each);
    // The threads themselves need a few.
    EXPECT_LT(allocations() - before, thread_count * each + 100);
}

TEST(allocation_counter, adds_its_field_to_the_rows_of_a_benchmark_that_links_it) {
    benchmark bench("b", "?");
    bench.add({.name = "w", .operations = 100}).subject("limit", [](run& r) {
        r.measure([&] {
            for (std::uint64_t i = 0; i < 2 * r.operations(); ++i)
                keep(std::make_unique<int>(1).get());
        });
    });
    testing::internal::CaptureStdout();
    const char* const arguments[] = {"bench", "--quick"};
    EXPECT_EQ(bench.main(2, arguments), 0);
    EXPECT_NE(testing::internal::GetCapturedStdout().find(R"("allocations_per_op":2})"), std::string::npos);
}

}  // namespace
}  // namespace sluice::bench
