#include "sluice/base/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sluice {
namespace {

[[nodiscard]] bool is_aligned(const pool_buffer& buffer, std::size_t to_bytes) {
    return reinterpret_cast<std::uintptr_t>(buffer.data()) % to_bytes == 0;
}

TEST(buffer_pool, returns_the_requested_size_and_not_the_reserved_one) {
    buffer_pool pool;
    const pool_buffer buffer = pool.take(700);
    ASSERT_TRUE(buffer);
    EXPECT_EQ(buffer.size(), 700U);
    EXPECT_EQ(buffer.bytes().size(), 700U);
    EXPECT_TRUE(pool.take(0)) << "also no bytes are a buffer";
}

TEST(buffer_pool, buffers_of_a_page_and_more_begin_on_a_page) {
    buffer_pool pool;
    std::vector<pool_buffer> held;
    for (const std::size_t bytes : {4096U, 5000U, 65'536U + 1U, 1U << 20, 8U << 20}) {
        held.push_back(pool.take(bytes));
        EXPECT_TRUE(is_aligned(held.back(), 4096)) << bytes;
    }
    EXPECT_TRUE(is_aligned(pool.take(513), 1024)) << "smaller ones on their own size";
}

TEST(buffer_pool, reuses_the_last_returned_buffer_first) {
    buffer_pool pool;
    pool_buffer first = pool.take(1U << 20);
    pool_buffer second = pool.take(1U << 20);
    const std::byte* const hot = first.data();
    second = {};
    first = {};
    EXPECT_EQ(pool.take(600'000).data(), hot) << "it is the one in the CPU's cache";
}

TEST(buffer_pool, more_than_a_frame_can_need_is_refused) {
    buffer_pool pool;
    EXPECT_TRUE(pool.take(std::size_t{16} << 20));
    EXPECT_FALSE(pool.take((std::size_t{16} << 20) + 1));
    EXPECT_FALSE(pool.take(SIZE_MAX));
    EXPECT_EQ(pool.taken(), 0U);
}

TEST(buffer_pool, counts_the_buffers_in_use) {
    buffer_pool pool;
    {
        pool_buffer one = pool.take(10);
        pool_buffer other = pool.take(10'000);
        EXPECT_EQ(pool.taken(), 2U);
        pool_buffer moved = std::move(one);
        EXPECT_FALSE(one);  // NOLINT: that is the question
        EXPECT_EQ(pool.taken(), 2U) << "moving takes nothing";
        other = std::move(moved);
        EXPECT_EQ(pool.taken(), 1U) << "assignment returns the previous buffer";
        EXPECT_EQ(other.size(), 10U);
    }
    EXPECT_EQ(pool.taken(), 0U);
}

TEST(buffer_pool, keeps_no_more_than_its_limit) {
    buffer_pool pool(8192);
    std::vector<pool_buffer> many;
    for (int i = 0; i != 5; ++i)
        many.push_back(pool.take(4096));
    many.clear();
    EXPECT_EQ(pool.kept_bytes(), 8192U) << "the rest is freed";
    const pool_buffer again = pool.take(4096);
    EXPECT_EQ(pool.kept_bytes(), 4096U);
}

TEST(buffer_pool, counts_the_bytes_of_each_account_until_the_buffers_come_back) {
    buffer_pool pool;
    buffer_account one;
    buffer_account other;
    const buffer_source source(pool, &one);
    pool_buffer first = source.take(600);
    pool_buffer moved = std::move(first);
    pool_buffer second = pool.take(512, &other);
    const pool_buffer uncounted = pool.take(512);
    EXPECT_EQ(one.bytes(), 1024U) << "as reserved";
    EXPECT_EQ(other.bytes(), 512U);
    EXPECT_EQ(pool.taken_bytes(), 2048U);
    moved.shrink(1);
    EXPECT_EQ(one.bytes(), 1024U);
    second = std::move(moved);
    EXPECT_EQ(other.bytes(), 0U);
    second = {};
    EXPECT_EQ(one.bytes(), 0U);
    EXPECT_EQ(pool.taken_bytes(), 512U);
}

TEST(buffer_pool, a_shrunk_buffer_is_returned_with_its_full_size) {
    buffer_pool pool;
    pool_buffer buffer = pool.take(8192);
    const std::byte* const where = buffer.data();
    buffer.shrink(1);
    EXPECT_EQ(buffer.bytes().size(), 1U);
    buffer = {};
    EXPECT_EQ(pool.take(8192).data(), where);
}

}  // namespace
}  // namespace sluice
