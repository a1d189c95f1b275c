// Several threads on one file at a time.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/file/mapped_file_handle.hpp"
#include "sluice/io/path/fs_location.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using file_threads_on = on_each_volume;

TEST_P(file_threads_on, appends_from_several_threads_and_handles_do_not_mix) {
    constexpr int thread_count = 4;
    constexpr std::size_t record_count = 300;
    constexpr std::size_t record_bytes = 777;  // not a divisor of a page: records cross pages
    (void)file_handle::open(directory.anchor(), "log", mode::append, creation::if_needed).value();
    std::vector<std::thread> threads;
    for (int writer = 0; writer < thread_count; ++writer) {
        threads.emplace_back([&, writer] {
            auto log = file_handle::open(directory.anchor(), "log", mode::append).value();
            std::array<std::byte, record_bytes> record;
            record.fill(static_cast<std::byte>('a' + writer));
            for (std::size_t i = 0; i < record_count; ++i)
                ASSERT_EQ(log.write(io_request<const_bytes_type>{record}).bytes_transferred(), record_bytes);
        });
    }
    for (auto& thread : threads)
        thread.join();
    const std::string log = directory.content("log");
    ASSERT_EQ(log.size(), thread_count * record_count * record_bytes);
    for (std::size_t at = 0; at < log.size(); at += record_bytes) {
        const std::string_view record = std::string_view(log).substr(at, record_bytes);
        ASSERT_EQ(record.find_first_not_of(record[0]), record.npos) << "a record is torn at " << at;
    }
}

TEST_P(file_threads_on, a_waiting_lock_is_granted_when_the_holder_releases_it) {
    auto first = file_handle::open(directory.anchor(), "file", mode::write, creation::if_needed).value();
    auto second = file_handle::open(directory.anchor(), "file", mode::write).value();
    for (const deadline within : {deadline(), deadline(10s)}) {
        auto held = first.lock_range({}, lock_kind::exclusive).value();
        std::atomic<bool> released = false;
        std::thread waiter([&] {
            const auto got = second.lock_range({}, lock_kind::exclusive, within);
            EXPECT_TRUE(got);
            EXPECT_TRUE(released.load(std::memory_order_relaxed));
        });
        std::this_thread::sleep_for(20ms);
        released.store(true, std::memory_order_relaxed);
        held.unlock();
        waiter.join();
    }
}

TEST_P(file_threads_on, unlink_finds_its_file_while_others_rename_it) {
    for (int round = 0; round < 20; ++round) {
        auto file = file_handle::open(directory.anchor(), "a", mode::write, creation::if_needed).value();
        std::atomic<bool> gone = false;
        std::thread renamer([&] {
            std::error_code failed;
            while (not gone.load(std::memory_order_relaxed)) {
                std::filesystem::rename(directory.path_of("a"), directory.path_of("b"), failed);
                std::filesystem::rename(directory.path_of("b"), directory.path_of("a"), failed);
            }
        });
        // The name may also change at the last moment: then it does not exist and nothing is
        // removed.
        result<void> unlinked = unlink(file);
        for (int attempt = 0; not unlinked and attempt < 10'000; ++attempt)
            unlinked = unlink(file);
        gone.store(true, std::memory_order_relaxed);
        renamer.join();
        EXPECT_TRUE(unlinked) << unlinked.error().message();
        EXPECT_EQ(directory.entry_count(), 0U);
    }
}

TEST_P(file_threads_on, with_always_new_the_file_exists_at_every_moment) {
    (void)file_handle::open(directory.anchor(), "file", mode::write, creation::if_needed).value();
    std::atomic<bool> done = false;
    std::thread replacer([&] {
        for (int i = 0; i < 300; ++i)
            EXPECT_TRUE(file_handle::open(directory.anchor(), "file", mode::write, creation::always_new));
        done.store(true, std::memory_order_relaxed);
    });
    while (not done.load(std::memory_order_relaxed))
        EXPECT_TRUE(file_handle::open(directory.anchor(), "file"));
    replacer.join();
    EXPECT_EQ(directory.entry_count(), 1U);
}

TEST_P(file_threads_on, mapped_writes_past_the_end_do_not_truncate_each_other) {
    constexpr std::size_t piece_bytes = 1000;
    constexpr std::size_t piece_count = 400;
    auto file = mapped_file_handle::open(directory.anchor(), "file", piece_bytes * piece_count, mode::write,
                                         creation::if_needed)
                    .value();
    std::vector<std::thread> threads;
    for (std::size_t writer = 0; writer < 2; ++writer) {
        threads.emplace_back([&, writer] {
            std::array<std::byte, piece_bytes> piece;
            piece.fill(static_cast<std::byte>('a' + writer));
            for (std::size_t i = writer; i < piece_count; i += 2)
                ASSERT_EQ(
                    file.write(io_request<const_bytes_type>{piece, i * piece_bytes}).bytes_transferred(),
                    piece_bytes);
        });
    }
    for (auto& thread : threads)
        thread.join();
    ASSERT_EQ(file.mapped_length(), piece_bytes * piece_count);
    const std::string content = directory.content("file");
    for (std::size_t i = 0; i < piece_count; ++i)
        ASSERT_EQ(content.substr(i * piece_bytes, piece_bytes),
                  std::string(piece_bytes, i % 2 == 0 ? 'a' : 'b'));
}

SLUICE_ON_EACH_VOLUME(file_threads_on);

}  // namespace
}  // namespace sluice::io
