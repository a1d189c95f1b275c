// The behaviour of atomic_append beyond the contract of every mutex. The first thirteen tests are
// the faults of the implementation that gave it its idea. Each fails if this implementation has the
// fault.

#include "sluice/fsmutex/atomic_append.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sluice/fsmutex/process/processes_testing.hpp"
#include "sluice/fsmutex/queue/queue_format.hpp"
#include "sluice/io/path/volume_test.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using namespace queue_format;

class a_queue_file : public testing::Test {
protected:
    [[nodiscard]] std::unique_ptr<shared_fs_mutex> open(
        const dependencies& from = dependencies::of_this_machine()) const {
        return atomic_append::open(directory.anchor(), "queue", from).value();
    }
    // Returns the current header.
    [[nodiscard]] header current_header() const {
        const std::string text = directory.content("queue");
        return decode_header({reinterpret_cast<const std::byte*>(text.data()), page_bytes}).value();
    }
    [[nodiscard]] std::vector<slot> live_slots() const {
        const std::string text = directory.content("queue");
        std::vector<slot> live;
        for (std::size_t at = page_bytes; at < text.size(); at += slot_bytes) {
            const slot each = decode_slot({reinterpret_cast<const std::byte*>(text.data()) + at, slot_bytes});
            if (each.kind != slot_kind::free) live.push_back(each);
        }
        return live;
    }
    [[nodiscard]] struct stat status() const {
        struct stat seen{};
        EXPECT_EQ(::stat(directory.path_of("queue").c_str(), &seen), 0);
        return seen;
    }
    static void churn(shared_fs_mutex& mutex, int rounds, entity what = entity(1000)) {
        for (int i = 0; i != rounds; ++i)
            ASSERT_TRUE(mutex.lock(what));
    }
    // Makes the file an empty ring.
    void make_ring(std::uint32_t pages) const {
        std::array<std::byte, page_bytes> page;
        encode({.created_s = 1'800'000'000, .ring_pages = pages}, page);
        directory.write("queue", std::string(reinterpret_cast<const char*>(page.data()), page.size()));
    }
    [[nodiscard]] int shared_locks_from(std::uint64_t first) const {
        const std::string inode = ":" + std::to_string(status().st_ino) + " ";
        std::ifstream locks("/proc/locks");
        int count = 0;
        for (std::string line; std::getline(locks, line);) {
            const auto at = line.find(inode);
            if (at == std::string::npos or line.find(" READ ") == std::string::npos) continue;
            count += std::stoull(line.substr(at + inode.size())) >= first;
        }
        return count;
    }
    // Returns the bytes that this process has read so far.
    static std::uint64_t bytes_read() {
        std::ifstream counters("/proc/self/io");
        std::string name;
        std::uint64_t count = 0;
        counters >> name >> count;
        return count;
    }

    io::test_directory directory{std::filesystem::current_path().string()};
};

// Fault 1: the guard of the file was lost, and the next process to open it truncated the live
// queue.
TEST_F(a_queue_file, is_not_recreated_by_an_open_while_it_is_in_use) {
    const auto one = open();
    const auto held = one->lock(entity(1)).value();
    process other([&] {
        const auto own = open();
        if (own->try_lock(entity(1))) fail_child("two hold one entity");
    });
    EXPECT_TRUE(other.join());
    EXPECT_EQ(live_slots().size(), 1);
    const auto second = open();
    EXPECT_FALSE(second->try_lock(entity(1)));
}

// Fault 2: unlocking read the same 6 KiB repeatedly while an older lock of another process was
// before them.
TEST_F(a_queue_file, unlocks_at_once_while_an_older_lock_is_before_many_others) {
    const auto one = open();
    const auto held = one->lock(entity(1)).value();
    process other([&] { churn(*open(), 500); });
    EXPECT_TRUE(other.join());
}

// Fault 3: a waiter polled, because the owner's own lock was dropped as soon as it was granted.
TEST_F(a_queue_file, lets_waiters_sleep_while_the_lock_is_held) {
    const auto one = open();
    auto held = one->lock(entity(1)).value();
    process waiter([&] { (void)open()->lock(entity(1)); });
    ASSERT_TRUE(eventually([&] { return is_asleep(waiter.id()) and live_slots().size() == 2; }));
    std::this_thread::sleep_for(50ms);
    const auto before = processor_time_of(waiter.id());
    std::this_thread::sleep_for(500ms);
    EXPECT_EQ(processor_time_of(waiter.id()), before);
    held.unlock();
    EXPECT_TRUE(waiter.join());
}

// Fault 4: a holder that died while others had the file open was not noticed.
TEST_F(a_queue_file, is_freed_of_a_dead_holder_at_once_while_others_have_it_open) {
    const auto one = open();
    process other = process_that_holds([&] { return open(); }, entity(1));
    std::chrono::steady_clock::time_point died;
    std::jthread killer([&] {
        std::this_thread::sleep_for(50ms);
        other.stop();
        died = std::chrono::steady_clock::now();
    });
    auto held = one->lock(entity(1)).value();
    const auto granted = std::chrono::steady_clock::now();
    killer.join();
    EXPECT_TRUE(held.owner_died());
    EXPECT_LT(granted - died, 5s);  // 50 ms on a machine that is not busy
    held.unlock();
    EXPECT_TRUE(live_slots().empty());
}

// Fault 5: a finite deadline failed at once with "operation not supported".
TEST_F(a_queue_file, honours_a_finite_deadline_and_leaves_no_request) {
    const auto one = open();
    const auto held = one->lock(entity(1)).value();
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(one->lock(entity(1), 100ms).error(), std::errc::timed_out);
    EXPECT_GE(std::chrono::steady_clock::now() - began, 100ms);
    EXPECT_EQ(live_slots().size(), 1);
}

// Fault 6: without hashes, two concurrent requests for the same entity took each other's record for
// their own.
TEST_F(a_queue_file, distinguishes_concurrent_requests_for_the_same_entity) {
    const shared_memory<std::atomic<int>> inside;
    std::vector<process> workers;
    for (int i = 0; i != 2; ++i)
        workers.emplace_back([&] {
            const auto own = open();
            for (int round = 0; round != 3000; ++round) {
                const auto held = own->lock(entity(7));
                if (not held or inside->fetch_add(1) != 0) fail_child("two took one request for their own");
                inside->fetch_sub(1);
            }
        });
    for (process& each : workers)
        EXPECT_TRUE(each.join());
}

// Fault 7: no hole was ever punched, so every lock cost 128 bytes of disk permanently.
TEST_F(a_queue_file, frees_the_blocks_of_finished_requests) {
    const auto one = open();
    churn(*one, 24'000);
    EXPECT_GE(status().st_size, 24'000 * 128);
    EXPECT_LE(status().st_blocks * 512, 2 << 20);
    const auto held = one->lock(entity(1)).value();  // a lock held for long is before them
    churn(*one, 24'000);
    EXPECT_LE(status().st_blocks * 512, 2 << 20);
}

// Fault 8: one lock held for long made every later one read all slots since then.
TEST_F(a_queue_file, is_not_scanned_back_to_a_lock_held_for_long) {
    const auto one = open();
    const auto held = one->lock(entity(1)).value();
    churn(*one, 4000);
    const auto before = bytes_read();
    churn(*one, 320);
    EXPECT_LE((bytes_read() - before) / 320, 20U << 10);  // 4000 slots are half a million bytes
    EXPECT_EQ(current_header().live_pages.size(), 1);
    EXPECT_FALSE(one->try_lock(entity(1))) << "and it is still held";
    EXPECT_FALSE(open()->try_lock(entity(1)));
}

TEST_F(a_queue_file, is_not_scanned_before_the_oldest_live_lock_seen) {
    const auto one = open();
    auto held = one->lock(entity(0)).value();
    const auto before = bytes_read();
    constexpr std::uint64_t rounds = 1000;
    for (std::uint64_t i = 1; i != rounds; ++i)
        held = one->lock(entity(i)).value();
    EXPECT_LT((bytes_read() - before) / rounds, 1500) << "two slots, and sometimes a page";
    EXPECT_FALSE(one->try_lock(entity(rounds - 1))) << "a live slot must be found again";
}

// Fault 9: an append flag, set and cleared on a descriptor that threads share, made their erasing
// append.
TEST_F(a_queue_file, is_used_from_threads_of_one_object_without_erasing_at_the_end) {
    const auto one = open();
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i != 4; ++i)
            threads.emplace_back([&, i] { churn(*one, 500, entity(i)); });
    }
    EXPECT_EQ(status().st_size, static_cast<off_t>(page_bytes + 4 * 500 * slot_bytes));
    EXPECT_TRUE(live_slots().empty());
}

// Fault 10: it was never removed.
TEST_F(a_queue_file, is_removed_by_its_last_user_and_no_other) {
    auto one = open();
    auto two = open();
    one.reset();
    EXPECT_TRUE(directory.exists("queue"));
    process killed([&] { (void)open().release(); });  // never closes it itself
    EXPECT_TRUE(killed.join());
    two.reset();
    EXPECT_FALSE(directory.exists("queue"));
}

// Fault 11: the header was written from old copies, so that it could go backwards, and a dead
// record at the wrong position prevented its progress.
TEST_F(a_queue_file, has_a_header_that_only_advances_and_passes_a_dead_slot) {
    const auto one = open();
    const auto dies = [&](std::uint64_t what) {
        process other([&] {
            const auto own = open();
            (void)own.get();
            auto held = own->lock(entity(what)).value();
            ::raise(SIGKILL);
        });
        EXPECT_FALSE(other.join());
    };
    dies(77);  // its slot is the first of the first page
    std::vector<process> workers;
    for (int i = 0; i != 3; ++i)
        workers.emplace_back([&] { churn(*open(), 1500); });
    std::uint64_t before = 0;
    for (int i = 0; i != 50; ++i) {
        const std::string text = directory.content("queue");
        const auto now = decode_header({reinterpret_cast<const std::byte*>(text.data()), page_bytes});
        if (not now) continue;  // is being written
        EXPECT_GE(now->first_known_good, before);
        before = now->first_known_good;
    }
    for (process& each : workers)
        EXPECT_TRUE(each.join());
    churn(*one, 1000);
    const auto now = current_header();
    EXPECT_GE(now.first_known_good + 2 * page_bytes, static_cast<std::uint64_t>(status().st_size));
    EXPECT_EQ(now.live_pages, std::vector<std::uint64_t>{page_bytes});
    EXPECT_TRUE(one->lock(entity(77)).value().owner_died());
    churn(*one, 600);
    EXPECT_TRUE(current_header().live_pages.empty());
}

// Fault 12: twelve entities at most, a try that left a trace, and unchecked ids.
TEST_F(a_queue_file, takes_more_than_twelve_entities_in_slots_that_follow_each_other) {
    const auto one = open();
    std::vector<entity> many;
    for (std::uint64_t i = 0; i != 40; ++i)
        many.emplace_back(i);
    const auto held = one->lock(many).value();
    EXPECT_EQ(live_slots().size(), 4);
    EXPECT_FALSE(one->try_lock(entity(0)));
    EXPECT_FALSE(one->try_lock(entity(39)));
}
TEST_F(a_queue_file, is_not_changed_by_a_try_that_fails) {
    const auto one = open();
    const auto held = one->lock(entity(1)).value();
    const std::string before = directory.content("queue");
    EXPECT_FALSE(open()->try_lock(std::vector{entity(0), entity(1)}));
    EXPECT_EQ(directory.content("queue"), before);
}
TEST_F(a_queue_file, has_no_two_requests_of_one_id_even_if_random_numbers_repeat) {
    seeded_random random(1);
    seeded_random same_chance(1);
    const auto one = open({.clock = dependencies::of_this_machine().clock, .random = &random});
    const auto two = open({.clock = dependencies::of_this_machine().clock, .random = &same_chance});
    const auto held = one->lock(entity(1)).value();
    const auto other = two->lock(entity(2)).value();
    const auto live = live_slots();
    ASSERT_EQ(live.size(), 2);
    EXPECT_NE(live[0].id, live[1].id);
}
TEST_F(a_queue_file, is_given_a_new_id_for_each_request_that_others_could_wait_for) {
    const auto one = open();
    const auto two = open();
    std::vector<std::uint64_t> ids;
    for (int request = 0; request != 40; ++request) {
        auto held = one->lock(entity(1)).value();
        ids.push_back(live_slots().front().id);
        // After it, so that it is not the last one when it is released.
        const auto behind = two->lock(entity(2)).value();
        held.unlock();
    }
    std::sort(ids.begin(), ids.end());
    EXPECT_EQ(std::unique(ids.begin(), ids.end()), ids.end());
}
TEST_F(a_queue_file, has_no_lock_left_of_a_request_that_was_waited_for) {
    const auto one = open();
    auto held = one->lock(entity(1)).value();
    const auto two = open();
    std::jthread waiter([&] { EXPECT_TRUE(two->lock(entity(1))); });
    ASSERT_TRUE(eventually([&] { return live_slots().size() == 2; }));
    std::this_thread::sleep_for(50ms);  // by then it sleeps in the kernel, on a lock of its own
    held.unlock();
    waiter.join();
    // One shared lock for each process that has the file open.
    if (shared_locks_from(0) == 0) GTEST_SKIP() << "/proc/locks does not show this file's";
    EXPECT_EQ(shared_locks_from(std::uint64_t{1} << 62), 0);
}

// Fault 13: file systems without an atomic append.
TEST_F(a_queue_file, is_appended_to_under_a_lock_on_a_network_file_system) {
    make_ring(ring_pages_usual);
    const shared_memory<std::atomic<int>> inside;
    std::vector<process> workers;
    const auto anchor = open();
    for (int i = 0; i != 4; ++i)
        workers.emplace_back([&] {
            const auto own = open();
            for (int round = 0; round != 300; ++round) {
                const auto held = own->lock(std::vector{entity(7), entity(8)});
                if (not held or inside->fetch_add(1) != 0) fail_child("two hold one entity");
                inside->fetch_sub(1);
            }
        });
    for (process& each : workers)
        EXPECT_TRUE(each.join());
    EXPECT_EQ(status().st_size, static_cast<off_t>(page_bytes + 4 * 300 * slot_bytes))
        << "no two at one position";
}

// Fault 7, where no blocks can be freed.
TEST_F(a_queue_file, that_is_a_ring_does_not_grow_while_locks_are_held) {
    make_ring(2);
    const auto one = open();
    process other([&] {
        const auto own = open();
        const auto held = own->lock(entity(77)).value();
        ::raise(SIGKILL);
    });
    EXPECT_FALSE(other.join());
    {
        std::vector<entity> many;
        for (std::uint64_t i = 0; i != 40; ++i)
            many.emplace_back(i);
        const auto held = one->lock(many).value();
        churn(*one, 2000);
        EXPECT_FALSE(open()->try_lock(entity(0)));
        EXPECT_FALSE(open()->try_lock(entity(39)));
    }
    EXPECT_FALSE(open()->try_lock(entity(39)).value().owner_died());
    churn(*one, 2000);
    EXPECT_TRUE(one->lock(entity(77)).value().owner_died());
    EXPECT_FALSE(one->lock(entity(77)).value().owner_died());
    churn(*one, 200);
    EXPECT_EQ(status().st_size, 3 * page_bytes);
    EXPECT_TRUE(live_slots().empty());
    EXPECT_TRUE(current_header().live_pages.empty());
}
TEST_F(a_queue_file, that_is_a_ring_holds_no_more_requests_than_it_has_slots) {
    make_ring(1);
    const auto one = open();
    std::vector<shared_fs_mutex::guard> held;
    for (std::uint64_t i = 0; i != slots_per_page; ++i)
        held.push_back(one->lock(entity(i)).value());
    EXPECT_EQ(one->lock(entity(100)).error(), std::errc::no_space_on_device);
    held.erase(held.begin() + 7);
    EXPECT_TRUE(one->lock(entity(7)));
    std::vector<entity> many;
    for (std::uint64_t i = 0; i != head_entities_max + 1; ++i)
        many.emplace_back(1000 + i);
    EXPECT_EQ(one->lock(many).error(), std::errc::no_space_on_device) << "two consecutive slots";
    held.pop_back();
    held.pop_back();
    EXPECT_TRUE(one->lock(many));
    EXPECT_EQ(status().st_size, 2 * page_bytes);
}

// Properties without a fault there.

TEST_F(a_queue_file, lists_waiters_with_their_start_times) {
    const auto one = open();
    const auto held = one->lock(entity(1)).value();
    const auto live = live_slots();
    ASSERT_EQ(live.size(), 1);
    EXPECT_EQ(live[0].process_id, static_cast<std::uint32_t>(::getpid()));
    EXPECT_FALSE(live[0].host_name().empty());
    EXPECT_LT(live[0].when_us, 60'000'000U);
}

TEST_F(a_queue_file, reports_a_death_again_to_requests_for_the_other_entities_held) {
    process other([&] {
        const auto own = open();
        const auto held = own->lock(std::vector{entity(1), entity(2), entity(3, lock_mode::shared)}).value();
        ::raise(SIGKILL);
    });
    EXPECT_FALSE(other.join());
    const auto one = open();
    EXPECT_FALSE(one->lock(entity(3)).value().owner_died()) << "a reader changes nothing";
    EXPECT_TRUE(one->lock(entity(1, lock_mode::shared)).value().owner_died());
    EXPECT_TRUE(one->lock(entity(1)).value().owner_died()) << "a reader repairs nothing";
    EXPECT_FALSE(one->lock(entity(1)).value().owner_died());
    EXPECT_TRUE(one->lock(entity(2)).value().owner_died());
    EXPECT_TRUE(live_slots().empty());
}

TEST_F(a_queue_file, continues_after_an_incomplete_append) {
    const auto one = open();
    process other([&] {
        ::signal(SIGXFSZ, SIG_IGN);
        const auto own = open();
        const rlimit limit{.rlim_cur = page_bytes + 50, .rlim_max = page_bytes + 50};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        if (own->lock(entity(1))) fail_child("half a request was granted");
        if (own->lock(entity(1)).error() != std::errc::file_too_large)
            fail_child("not the error of the append");
    });
    EXPECT_TRUE(other.join());
    EXPECT_EQ(status().st_size, page_bytes + 50);
    const auto held = one->lock(entity(1)).value();
    EXPECT_EQ(status().st_size % slot_bytes, 0);
    EXPECT_EQ(live_slots().size(), 1);
    EXPECT_FALSE(open()->try_lock(entity(1)));
}

TEST_F(a_queue_file, is_refused_if_it_is_something_else_and_left_as_it_was) {
    directory.write("queue", std::string(5000, 'x'));
    EXPECT_EQ(atomic_append::open(directory.anchor(), "queue").error(), std::errc::bad_message);
    EXPECT_EQ(directory.content("queue"), std::string(5000, 'x'));
}

TEST_F(a_queue_file, whose_slot_is_damaged_is_an_error_and_no_grant) {
    const auto one = open();
    {
        std::ofstream file(directory.path_of("queue"), std::ios::app);
        file << std::string(slot_bytes, 'x');
    }
    EXPECT_EQ(one->lock(entity(1)).error(), std::errc::bad_message);
}

}  // namespace
}  // namespace sluice::fsmutex
