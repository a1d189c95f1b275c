// Another process truncates the file of atomic_append: no user crashes, no lock is granted because
// slots are missing, and users get errors.

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>

#include "sluice/fsmutex/async_lock.hpp"
#include "sluice/fsmutex/atomic_append.hpp"
#include "sluice/fsmutex/process/processes_testing.hpp"
#include "sluice/fsmutex/queue/queue_format.hpp"
#include "sluice/io/best_available.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/path/volume_test.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::fsmutex {
namespace {

using namespace std::chrono_literals;
using queue_format::page_bytes;
using queue_format::slot_bytes;
using mutex_pointer = std::unique_ptr<shared_fs_mutex>;

constexpr auto damaged = std::errc::bad_message;

class a_cut_queue_file : public testing::Test {
protected:
    [[nodiscard]] result<mutex_pointer> try_to_open() const {
        return atomic_append::open(directory.anchor(), "queue", dependencies::of_this_machine());
    }
    [[nodiscard]] mutex_pointer open() const { return try_to_open().value(); }
    void cut(std::uint64_t size) const { std::filesystem::resize_file(directory.path_of("queue"), size); }
    // Returns whether the waiter waits after one slot, that of the holder.
    [[nodiscard]] bool waits(const process& waiter) const {
        return eventually([&] {
            return std::filesystem::file_size(directory.path_of("queue")) == page_bytes + 2 * slot_bytes and
                   is_asleep(waiter.id());
        });
    }

    io::test_directory directory{std::filesystem::current_path().string()};
};

using wait_form = std::function<result<fs_mutex_guard>(shared_fs_mutex&, entity)>;

result<fs_mutex_guard> wait_in_a_loop(io::io_multiplexer& loop, shared_fs_mutex& mutex, entity wanted,
                                      deadline within) {
    return io::sync_wait(loop, co_lock(loop, mutex, {wanted}, within));
}

struct named_form {
    const char* name;
    wait_form wait;
};

const std::array<named_form, 4> forms{{
    {"blocking", [](shared_fs_mutex& mutex, entity wanted) { return mutex.lock(wanted); }},
    {"with_a_deadline", [](shared_fs_mutex& mutex, entity wanted) { return mutex.lock(wanted, 1h); }},
    {"coroutine",
     [](shared_fs_mutex& mutex, entity wanted) {
         const auto loop = io::make_epoll_multiplexer().value();
         return wait_in_a_loop(*loop, mutex, wanted, {});
     }},
    {"coroutine_with_a_deadline",
     [](shared_fs_mutex& mutex, entity wanted) {
         const auto loop = io::best_available().value();
         return wait_in_a_loop(*loop, mutex, wanted, 1h);
     }},
}};

// A waiter in its own process, because a signal would end this one.
class every_waiter_of_a_cut_queue_file : public a_cut_queue_file,
                                         public testing::WithParamInterface<std::size_t> {
protected:
    [[nodiscard]] process waiter_that_expects_damage() const {
        return process([this] {
            const auto own = open();
            const auto got = forms[GetParam()].wait(*own, entity(1));
            if (got) fail_child("granted because slots are missing");
            if (got.error() != damaged) fail_child(got.error().message().c_str());
        });
    }
};

INSTANTIATE_TEST_SUITE_P(form, every_waiter_of_a_cut_queue_file, testing::Range(std::size_t{0}, forms.size()),
                         [](const auto& info) { return forms[info.param].name; });

TEST_P(every_waiter_of_a_cut_queue_file, gets_an_error_when_the_holder_dies) {
    process holder = process_that_holds([&] { return open(); }, entity(1));
    process waiter = waiter_that_expects_damage();
    ASSERT_TRUE(waits(waiter));
    cut(0);
    holder.stop();
    EXPECT_TRUE(waiter.join());
}

TEST_P(every_waiter_of_a_cut_queue_file, gets_an_error_when_the_holder_unlocks) {
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    process waiter = waiter_that_expects_damage();
    ASSERT_TRUE(waits(waiter));
    cut(page_bytes);
    EXPECT_EQ(held.unlock().error(), damaged);
    EXPECT_TRUE(waiter.join());
}

TEST_F(a_cut_queue_file, is_an_error_for_a_holder_that_checks_or_unlocks) {
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    EXPECT_TRUE(held.check());
    cut(0);
    EXPECT_EQ(held.check().error(), damaged);
    EXPECT_EQ(held.unlock().error(), damaged);
    EXPECT_TRUE(held.unlock()) << "again";
}

TEST_F(a_cut_queue_file, is_an_error_for_a_polling_waiter_while_it_is_still_held) {
    const auto mutex = open();
    const auto held = mutex->lock(entity(1)).value();
    process waiter([&] {
        if (open()->lock(entity(1), 1h).error() != damaged) fail_child("the truncation was not noticed");
    });
    ASSERT_TRUE(waits(waiter));
    cut(page_bytes);
    EXPECT_TRUE(waiter.join());
}

// The slot is at the previous position of the waiter's slot.
TEST_F(a_cut_queue_file, keeps_the_slot_of_a_request_that_came_after_the_cut) {
    const auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    process waiter([&] {
        if (open()->lock(entity(1)).error() != damaged) fail_child("the truncation was not noticed");
    });
    ASSERT_TRUE(waits(waiter));
    cut(page_bytes + slot_bytes);
    const auto fresh = mutex->lock(entity(2)).value();
    EXPECT_TRUE(held.unlock()) << "its own slot is still in the file";
    EXPECT_TRUE(waiter.join());
    EXPECT_FALSE(open()->try_lock(entity(2))) << "it is held";
}

TEST_F(a_cut_queue_file, is_an_error_for_requests_until_its_last_user_has_removed_it) {
    auto mutex = open();
    (void)mutex->lock(entity(1));
    cut(0);
    EXPECT_EQ(mutex->lock(entity(1)).error(), damaged);
    EXPECT_EQ(mutex->try_lock(entity(2)).error(), damaged);
    mutex.reset();
    EXPECT_FALSE(directory.exists("queue"));
    EXPECT_TRUE(open()->lock(entity(1)));
}

TEST_F(a_cut_queue_file, is_refused_while_others_have_it_open) {
    auto mutex = open();
    auto held = mutex->lock(entity(1)).value();
    cut(0);
    EXPECT_EQ(try_to_open().error(), damaged);
    EXPECT_EQ(held.unlock().error(), damaged);
    mutex.reset();
    EXPECT_TRUE(open()->lock(entity(1)));
}

TEST_F(a_cut_queue_file, crashes_no_user_at_any_time_of_truncation) {
    std::vector<process> workers;
    for (int i = 0; i != 2; ++i)
        workers.emplace_back([&] {
            int rounds_left = 3000;
            while (rounds_left-- > 0) {
                auto mutex = try_to_open();
                if (not mutex and mutex.error() != damaged) fail_child(mutex.error().message().c_str());
                for (bool is_intact = mutex.has_value(); is_intact and rounds_left > 0; --rounds_left) {
                    const auto held = (*mutex)->lock(entity(1));
                    is_intact = held.has_value();
                    if (not held and held.error() != damaged) fail_child(held.error().message().c_str());
                }
            }
        });
    for (int i = 0; i != 200; ++i) {
        std::error_code absent;  // sometimes
        std::filesystem::resize_file(directory.path_of("queue"), i % 3 * slot_bytes + i % 2 * page_bytes,
                                     absent);
        ::usleep(500);
    }
    for (process& each : workers)
        EXPECT_TRUE(each.join());
}

}  // namespace
}  // namespace sluice::fsmutex
