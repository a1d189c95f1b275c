#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "sluice/io/best_available.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"
#include "tests/smb_simulation/world/world.hpp"

namespace sluice::smb_simulation {

/// A loop that runs on its own thread during the lifetime of this object.
class running_loop {
public:
    running_loop()
        : until_end_(std::in_place, *multiplexer_), runner_([this] {
              while (multiplexer_->run().value_or(0) > 0) {}
          }) {}
    ~running_loop() {
        until_end_.reset();
        runner_.join();
    }
    [[nodiscard]] io::io_multiplexer& multiplexer() noexcept { return *multiplexer_; }

private:
    std::unique_ptr<io::io_multiplexer> multiplexer_ = io::best_available().value();
    std::optional<io::io_multiplexer::work_guard> until_end_;
    std::thread runner_;
};

/// A server on `count` loops; the first one belongs to this thread. The user is u with password p.
class server_on_loops {
public:
    using shares = std::vector<smb::server::share_configuration>;

    /// A server of one share, "files".
    server_on_loops(std::size_t count,
                    std::unique_ptr<vfs::volume> (*make)(io::io_multiplexer&, clock_source&))
        : server_on_loops(count, [make](io::io_multiplexer& loop, clock_source& clock) {
              shares one(1);
              one.front().name = "files";
              one.front().volume = make(loop, clock);
              return one;
          }) {}
    /// A server of the shares that `make` returns.
    server_on_loops(std::size_t count, const std::function<shares(io::io_multiplexer&, clock_source&)>& make)
        : ended_(*first_), announcements_(*first_) {
        std::vector<io::io_multiplexer*> others;
        for (std::size_t i = 1; i != count; ++i) {
            others_.push_back(std::make_unique<running_loop>());
            others.push_back(&others_.back()->multiplexer());
        }
        const smb::server::user_database::admission only{.name = "u", .password = "p"};
        EXPECT_TRUE(users_.admit(std::span(&only, 1)));
        smb::server::server_configuration configuration;
        configuration.signing = smb::server::protection::offered;
        configuration.shares = make(*first_, clock_);
        for (const smb::server::share_configuration& each : configuration.shares)
            domains_.push_back(each.volume->domain().shared_from_this());
        server_ =
            std::make_unique<smb::server::smb_server>(smb::server::server_dependencies{.loop = *first_,
                                                                                       .clock = clock_,
                                                                                       .random = secrets_,
                                                                                       .accounts = users_,
                                                                                       .log = log_,
                                                                                       .other_loops = others},
                                                      std::move(configuration));
        EXPECT_TRUE(server_->start({}));
    }

    [[nodiscard]] smb::server::smb_server& server() noexcept { return *server_; }
    [[nodiscard]] clock_source& clock() noexcept { return clock_; }

    /// Returns the client's end of a new connection of the client with that number.
    [[nodiscard]] io::socket_handle connect(std::uint16_t client) {
        auto pair = io::socket_handle::pair().value();
        server_->adopt(std::move(pair.first), io::socket_address::loopback_v4(client));
        return std::move(pair.second);
    }

    /// Does the same, for a client on its own thread.
    [[nodiscard]] io::socket_handle connect_from_thread(std::uint16_t client) {
        auto pair = io::socket_handle::pair().value();
        EXPECT_TRUE(first_->post([this, given = std::move(pair.first), client]() mutable noexcept {
            server_->adopt(std::move(given), io::socket_address::loopback_v4(client));
        }));
        return std::move(pair.second);
    }

    /// Blocks a loop, not the first, from the return of this function until `until` is released.
    /// `until` outlives the server.
    void hold_up(std::size_t loop, std::binary_semaphore& until) {
        const auto is_held = std::make_shared<std::binary_semaphore>(0);
        EXPECT_TRUE(others_.at(loop - 1)->multiplexer().post([&until, is_held]() noexcept {
            is_held->release();
            until.acquire();
        }));
        is_held->acquire();
    }

    /// Announces the stop of the server, from the thread of a client. Returns whether that has
    /// ended within ten seconds.
    [[nodiscard]] bool announce_stop() {
        const auto is_announced = std::make_shared<std::binary_semaphore>(0);
        EXPECT_TRUE(
            first_->post([this, is_announced]() noexcept { announcements_.spawn(announce(is_announced)); }));
        return is_announced->try_acquire_for(std::chrono::seconds(10));
    }

    /// Serves until all `clients`, each on its own thread, have returned; then stops.
    void serve(std::vector<std::function<void()>> clients) {
        std::atomic<std::size_t> left = clients.size();
        std::vector<std::thread> threads;
        for (auto& client : clients) {
            threads.emplace_back([&] {
                client();
                if (left.fetch_sub(1) == 1) (void)first_->post([this]() noexcept { ended_.set(true); });
            });
        }
        io::sync_wait(*first_, until_ended());
        for (std::thread& one : threads)
            one.join();
        const auto gauges = server_->gauges();
        EXPECT_EQ(gauges.connections, 0U);
        EXPECT_EQ(gauges.sessions, 0U) << "no session outlives its connections";
        EXPECT_EQ(gauges.opens, 0U) << "no open outlives its session";
        EXPECT_EQ(gauges.files, 0U) << "no file stays locked or shared";
        EXPECT_EQ(gauges.buffers, 0U) << "every buffer is returned";
        wait_for_workers();
    }

private:
    io::task<void> announce(std::shared_ptr<std::binary_semaphore> is_announced) {
        io::task<void> announcing = server_->announce_stop();
        co_await std::move(announcing);
        is_announced->release();
    }
    io::task<void> until_ended() {
        (void)co_await ended_.wait();
        co_await announcements_.join();
        server_->stop();
        io::task<void> ending = server_->done();
        co_await std::move(ending);
    }

    // Their last calls destroy nodes, which hold their volume: it must not outlive its loop.
    void wait_for_workers() {
        for (const auto& domain : domains_)
            for (auto now = domain->statistics(); now.queued + now.running != 0; now = domain->statistics())
                std::this_thread::yield();
    }

    std::unique_ptr<io::io_multiplexer> first_ = io::best_available().value();
    std::vector<std::unique_ptr<running_loop>> others_;
    smb::server::one_shot_event<bool> ended_;
    io::task_group announcements_;
    system_clock_source clock_;
    system_random secrets_;
    smb::server::user_database users_;
    silent_log log_;
    std::vector<std::shared_ptr<vfs::fs_domain>> domains_;
    std::unique_ptr<smb::server::smb_server> server_;
};

[[nodiscard]] inline std::unique_ptr<vfs::volume> in_memory(io::io_multiplexer& loop, clock_source& clock) {
    return std::make_unique<vfs::memory_volume>(loop, clock);
}

}  // namespace sluice::smb_simulation
