#include "sluice/base/recycled_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace sluice {
namespace {

TEST(recycled_memory, reuses_a_released_block_of_the_same_size) {
    recycled_memory memory;
    void* const first = memory.allocate(100);
    void* const other = memory.allocate(500);
    memory.deallocate(first, 100);
    memory.deallocate(other, 500);
    if (not SLUICE_RECYCLES_MEMORY) GTEST_SKIP() << "no blocks are kept under AddressSanitizer";
    EXPECT_GE(memory.kept_bytes(), 600U);
    void* const again = memory.allocate(101);
    EXPECT_EQ(again, first) << "which has room for that, too";
    memory.deallocate(again, 101);
}

TEST(recycled_memory, keeps_no_more_than_its_limit) {
    recycled_memory memory(1024);
    std::vector<void*> taken;
    for (int i = 0; i != 100; ++i)
        taken.push_back(memory.allocate(64));
    for (void* const each : taken)
        memory.deallocate(each, 64);
    EXPECT_LE(memory.kept_bytes(), 1024U);
    EXPECT_EQ(memory.kept_bytes() == 0, not SLUICE_RECYCLES_MEMORY);
}

TEST(recycled_memory, leaves_large_or_overaligned_blocks_to_the_heap) {
    recycled_memory memory;
    void* const large = memory.allocate(recycled_memory::block_bytes_max + 1);
    void* const aligned = memory.allocate(64, 64);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 64, 0U);
    memory.deallocate(large, recycled_memory::block_bytes_max + 1);
    memory.deallocate(aligned, 64, 64);
    EXPECT_EQ(memory.kept_bytes(), 0U);
}

TEST(recycled_memory, allocates_no_block_twice_at_a_time) {
    recycled_memory memory(4096);
    std::map<std::byte*, std::size_t> taken;  // with their sizes
    std::uint64_t state = 1;
    const auto next = [&state](std::uint64_t below) {
        state = state * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
        return static_cast<std::size_t>((state >> 33) % below);
    };
    for (int i = 0; i != 20'000; ++i) {
        if (taken.empty() or next(2) == 0) {
            const std::size_t bytes = 1 + next(3000);
            auto* const fresh = static_cast<std::byte*>(memory.allocate(bytes));
            const auto behind = taken.lower_bound(fresh);
            if (behind != taken.end()) {
                ASSERT_LE(fresh + bytes, behind->first);
            }
            if (behind != taken.begin()) {
                ASSERT_LE(std::prev(behind)->first + std::prev(behind)->second, fresh);
            }
            taken.emplace(fresh, bytes);
        } else {
            const auto which = std::next(taken.begin(), static_cast<std::ptrdiff_t>(next(taken.size())));
            memory.deallocate(which->first, which->second);
            taken.erase(which);
        }
    }
    for (const auto& [at, bytes] : taken)
        memory.deallocate(at, bytes);
}

TEST(recycled_memory, serves_containers_and_their_elements) {
    recycled_memory memory;
    std::pmr::map<int, std::pmr::string> names(&memory);
    for (int i = 0; i != 100; ++i)
        names.emplace(i, std::string(40, 'n'));
    for (int i = 0; i != 100; ++i)
        EXPECT_EQ(names.at(i).size(), 40U);
}

TEST(recycled_memory_death_test, stops_when_it_is_destroyed_before_its_blocks) {
    EXPECT_DEATH(
        {
            recycled_memory memory;
            (void)memory.allocate(8);
        },
        "blocks are in use");
}

}  // namespace
}  // namespace sluice
