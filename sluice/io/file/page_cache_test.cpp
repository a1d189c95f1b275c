#include "sluice/io/file/page_cache.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "sluice/io/file/reopen.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

class page_cache : public on_each_volume {
protected:
    file_handle open(const char* name, mode wanted = mode::read) {
        return file_handle::open({}, directory.path_of(name), wanted).value();
    }
    // Makes the kernel evict the pages that it does not have to keep.
    static void evict(file_handle& file) {
        ASSERT_TRUE(file.barrier());
        ASSERT_EQ(::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_DONTNEED), 0);
    }
};

TEST_P(page_cache, does_not_count_pages_that_a_hole_has_removed) {
    directory.write("file", std::string(1'000'000, 'x'));
    auto file = open("file", mode::write);
    const auto count = cached_pages(file, {.offset = 0, .length = 8 * page_bytes()});
    if (not count) GTEST_SKIP() << "this kernel has no cachestat";
    EXPECT_EQ(*count, 8U);
    EXPECT_EQ(cached_pages(file, {.offset = 0, .length = 0}), 0U);
    ASSERT_TRUE(file.barrier());  // a dirty folio of several pages is not split
    ASSERT_TRUE(file.zero({.offset = 0, .length = 4 * page_bytes()}, file_handle::zero_method::punched));
    EXPECT_EQ(cached_pages(file, {.offset = 0, .length = 4 * page_bytes()}), 0U);
    EXPECT_EQ(cached_pages(file, {.offset = 4 * page_bytes(), .length = 1}), 1U);
}

TEST_P(page_cache, has_recently_written_pages_and_not_evicted_ones) {
    directory.write("file", std::string(1'000'000, 'x'));
    auto file = open("file", mode::write);
    EXPECT_TRUE(is_cached(file, {.offset = 0, .length = 1'000'000}));
    EXPECT_TRUE(is_cached(file, {.offset = 4097, .length = 1}));
    EXPECT_TRUE(is_cached(file, {.offset = 4097, .length = 0}));
    evict(file);
    const bool never_leaves = file.native().in_memory;
    EXPECT_EQ(is_cached(file, {.offset = 0, .length = 1'000'000}), never_leaves);
    char byte = 0;
    ASSERT_EQ(::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_RANDOM), 0);
    ASSERT_EQ(::pread(file.descriptor(), &byte, 1, 8192), 1);
    EXPECT_TRUE(is_cached(file, {.offset = 8192, .length = 4096}));
    EXPECT_EQ(is_cached(file, {.offset = 8191, .length = 4097}), never_leaves)
        << "the page before is not there";
}

TEST_P(page_cache, is_reached_through_a_duplicate_that_outlives_the_file_handle) {
    directory.write("file", "content");
    std::optional<file_handle> first = open("file");
    auto second = duplicate(*first).value();
    EXPECT_NE(second.descriptor(), first->descriptor());
    EXPECT_EQ(second.native().in_memory, first->native().in_memory);
    first.reset();
    std::array<std::byte, 16> storage{};
    EXPECT_EQ(second.read(io_request<bytes_type>{.buffers = storage, .offset = 0}).bytes_transferred(), 7U);
}

class reopened : public on_each_volume {};

TEST_P(reopened, file_is_the_same_after_its_name_was_changed_or_removed) {
    directory.write("file", "content");
    const auto named = file_handle::open({}, directory.path_of("file"), mode::none).value();
    ASSERT_EQ(::rename(directory.path_of("file").c_str(), directory.path_of("other").c_str()), 0);
    directory.write("file", "stranger");
    auto again = reopen(named, mode::write, {.in_memory = true});
    ASSERT_TRUE(again) << again.error().message();
    EXPECT_TRUE(again->native().in_memory);
    EXPECT_TRUE(again->native().writable);
    EXPECT_EQ(::fcntl(again->descriptor(), F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_RDWR);
    EXPECT_EQ(::fcntl(again->descriptor(), F_GETFD), FD_CLOEXEC);
    const std::array<std::byte, 3> written{std::byte{'C'}, std::byte{'O'}, std::byte{'N'}};
    ASSERT_TRUE(again->write(io_request<const_bytes_type>{.buffers = written, .offset = 0}));
    EXPECT_EQ(directory.content("other"), "CONtent");
    EXPECT_EQ(directory.content("file"), "stranger");

    const auto reader = reopen(named, mode::read, {});
    ASSERT_TRUE(reader);
    EXPECT_EQ(::fcntl(reader->descriptor(), F_GETFL) & (O_NONBLOCK | O_ACCMODE), O_RDONLY);
    EXPECT_FALSE(reader->native().writable);
}

SLUICE_ON_EACH_VOLUME(page_cache);
SLUICE_ON_EACH_VOLUME(reopened);

}  // namespace
}  // namespace sluice::io
