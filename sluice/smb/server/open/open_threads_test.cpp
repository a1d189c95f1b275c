// The monitors of this directory, used by several threads at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/held_mutexes.hpp"
#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/core/threads_testing.hpp"
#include "sluice/smb/server/open/named_pipe.hpp"
#include "sluice/smb/server/open/notify_watch.hpp"
#include "sluice/smb/server/open/open_table.hpp"
#include "sluice/smb/server/open/replay.hpp"
#include "sluice/smb/server/open/scripted_feed_testing.hpp"
#include "sluice/smb/server/report/silent_log_testing.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

namespace sluice::smb::server {
namespace {

using wire::nt_status;

constexpr std::size_t threads = 4;
constexpr std::uint64_t rounds = 1000;

class monitors_of_opens : public testing::Test {
protected:
    static shared_bounds many() {
        shared_bounds bounds{};
        bounds.fill(1U << 20);
        return bounds;
    }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer().value();
    simulated_clock clock_;
    silent_log log_;
    limit_rejections rejections_{log_, clock_};
    client_quotas quotas_{many(), rejections_};
};

TEST_F(monitors_of_opens, open_table_finds_opens_of_all_loops_and_no_number_twice) {
    open_table opens;
    run_at_once(threads, [&](std::size_t number) {
        const client_reference by = quotas_.user("user");
        std::uint64_t last = 0;
        for (std::uint64_t i = 0; i != rounds; ++i) {
            const std::shared_ptr<open> one = opens.make(by, number % 2);
            EXPECT_GT(one->id.persistent_part.value(), last);
            last = one->id.persistent_part.value();
            EXPECT_EQ(opens.find(one->id), one);
            if (i % 100 == 0) {
                for (const std::shared_ptr<open>& other : opens.all())
                    EXPECT_NE(other->id.persistent_part.value(), 0U);
            }
            opens.remove(*one);
            EXPECT_EQ(opens.find(one->id), nullptr);
        }
    });
    EXPECT_EQ(opens.size(), 0U);
    EXPECT_EQ(quotas_.in_use(limit::opens), 0U);
}

TEST_F(monitors_of_opens, open_table_lists_opens_of_all_loops_by_the_ends_of_their_numbers) {
    open_table opens;
    const client_reference by = quotas_.user("user");
    std::vector<std::shared_ptr<open>> all;
    for (std::size_t i = 0; i != 20; ++i)
        all.push_back(opens.make(by, i % 3));
    std::vector<std::uint32_t> listed;
    for (auto part = opens.ends_after(0, 7); not part.empty(); part = opens.ends_after(listed.back(), 7)) {
        EXPECT_LE(part.size(), 7U);
        listed.insert(listed.end(), part.begin(), part.end());
    }
    EXPECT_EQ(listed.size(), all.size());
    EXPECT_TRUE(std::ranges::is_sorted(listed));
    for (const std::shared_ptr<open>& one : all) {
        const auto end = static_cast<std::uint32_t>(one->id.persistent_part.value());
        EXPECT_TRUE(std::ranges::binary_search(listed, end));
        EXPECT_EQ(opens.find_by_end(end), one);
        opens.remove(*one);
        EXPECT_EQ(opens.find_by_end(end), nullptr);
    }
    EXPECT_EQ(opens.find_by_end(0xFFFFFFFF), nullptr);
}

TEST_F(monitors_of_opens, replay_table_lets_one_create_of_a_guid_begin) {
    replay_table replays;
    std::atomic<int> begun{0};
    run_at_once(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            const auto found = replays.find_or_begin({}, true);
            if (not found) {
                EXPECT_EQ(found.error(), nt_status::file_not_available);
                continue;
            }
            EXPECT_EQ(begun.fetch_add(1), 0);
            begun.fetch_sub(1);
        }
    });
    EXPECT_EQ(replays.size(), 0U);
}

// Answers each request by its bytes.
class echoing_pipe final : public named_pipe {
protected:
    bool process(bytes_view request, std::size_t) noexcept override {
        EXPECT_TRUE(held_mutexes::none()) << "a request is processed without a mutex";
        fresh_ = request.size();
        return true;
    }
    bool publish(bool is_valid) noexcept override {
        bytes_ += std::exchange(fresh_, 0);
        return is_valid;
    }
    read_outcome read_answer(mutable_bytes into) noexcept override {
        const std::size_t bytes = std::min(bytes_, into.size());
        bytes_ -= bytes;
        return {.bytes = bytes, .more = bytes_ != 0};
    }
    std::size_t answer_bytes() const noexcept override { return bytes_; }

private:
    std::size_t fresh_ = 0;
    std::size_t bytes_ = 0;
};

// A place in the order of the requests on a pipe, for a thread that waits for it.
class request_in_order {
public:
    request_in_order(named_pipe& at, io::io_multiplexer& loop) : at_(at), granted_(loop) {
        if (at.requests.lock(place_)) return;
        while (not granted_.is_set())
            std::this_thread::yield();
    }
    ~request_in_order() { at_.requests.unlock(place_); }

private:
    named_pipe& at_;
    one_shot_event<nt_status> granted_;
    fifo_lock::lock_request place_{granted_};
};

TEST_F(monitors_of_opens, named_pipe_wakes_a_reader_for_each_answer) {
    echoing_pipe pipe;
    std::atomic<std::size_t> read{0};
    run_at_once(threads, [&](std::size_t number) {
        std::array<std::byte, 1> one{};
        for (std::uint64_t i = 0; i != rounds; ++i) {
            if (number % 2 == 0) {
                const request_in_order turn(pipe, *loop_);
                EXPECT_TRUE(pipe.write(one));
                continue;
            }
            one_shot_event<nt_status> answered(*loop_);
            pipe.wait(answered);
            while (not answered.is_set())
                std::this_thread::yield();
            read.fetch_add(pipe.read(one).bytes);
            pipe.forget(answered);
        }
    });
    std::array<std::byte, 4096> rest{};
    EXPECT_EQ(read.load() + pipe.read(rest).bytes, threads / 2 * rounds);
    pipe.end();
    one_shot_event<nt_status> late(*loop_);
    pipe.wait(late);
    EXPECT_EQ(late.value(), nt_status::pipe_broken);
}

TEST_F(monitors_of_opens, named_pipe_gives_no_reader_the_answer_of_a_transaction) {
    echoing_pipe pipe;
    std::atomic<std::uint64_t> read{0};
    run_at_once(threads, [&](std::size_t number) {
        std::array<std::byte, 8> some{};
        for (std::uint64_t i = 0; i != rounds; ++i) {
            if (number % 2 == 0) {
                const request_in_order turn(pipe, *loop_);
                const auto got = pipe.transceive(some, some);
                EXPECT_EQ(got.status, nt_status::success);
                EXPECT_EQ(got.bytes, some.size());
                continue;
            }
            read.fetch_add(pipe.read(some).bytes, std::memory_order_relaxed);
        }
    });
    EXPECT_EQ(read.load(), 0U);
}

TEST_F(monitors_of_opens, named_pipe_gives_a_reader_the_rest_of_the_answer_of_a_transaction) {
    echoing_pipe pipe;
    std::array<std::byte, 8> some{};
    one_shot_event<nt_status> answered(*loop_);
    pipe.wait(answered);
    EXPECT_EQ(pipe.transceive(some, some).status, nt_status::success);
    EXPECT_FALSE(answered.is_set());
    const auto part = pipe.transceive(some, mutable_bytes(some).first(5).value());
    EXPECT_EQ(part.status, nt_status::buffer_overflow);
    EXPECT_EQ(part.bytes, 5U);
    EXPECT_EQ(answered.value(), nt_status::success);
    EXPECT_EQ(pipe.transceive(some, some).status, nt_status::pipe_busy);
    EXPECT_EQ(pipe.read(some).bytes, 3U);
    pipe.forget(answered);
}

TEST_F(monitors_of_opens, notify_watch_gives_each_change_to_one_of_several_requests) {
    scripted_feed feed;
    vfs::memory_volume volume(*loop_, clock_);
    const vfs::node_ptr root = volume.find("", vfs::follow_links::yes).value();
    const client_reference by = quotas_.user("user");
    const auto watch = notify_watch::begin(feed, *root, {.filter = wire::completion_filter::file_name},
                                           {.directories = quotas_.take(by, limit::watches),
                                            .change_bytes = quotas_.take(by, limit::queued_change_bytes, 0)})
                           .value();
    constexpr std::uint64_t changes = 500;
    std::atomic<std::uint64_t> taken{0};
    std::atomic<bool> is_over{false};
    run_at_once(threads, [&](std::size_t number) {
        if (number == 0) {
            for (std::uint64_t i = 0; i != changes; ++i)
                feed.listener->changed({.kind = vfs::change_kind::added, .path = "name"});
            while (taken.load() != changes)
                std::this_thread::yield();
            is_over.store(true);
            return;
        }
        std::array<std::byte, 65536> room{};
        while (not is_over.load()) {
            one_shot_event<nt_status> notified(*loop_);
            watch->wait(notified);
            while (not notified.is_set() and not is_over.load())
                std::this_thread::yield();
            wire::notify_writer list{mutable_bytes(room)};
            if (notified.is_set() and watch->take(list) == nt_status::success) taken.fetch_add(list.count());
            watch->forget(notified);
        }
    });
    EXPECT_EQ(taken.load(), changes);
    EXPECT_EQ(quotas_.in_use(limit::queued_change_bytes), 0U);
}

}  // namespace
}  // namespace sluice::smb::server
