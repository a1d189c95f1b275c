#include "sluice/smb/server/report/log_thread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace sluice::smb::server {
namespace {

using namespace std::chrono_literals;

// A log that can be made to block, as a full pipe does.
class recording_log final : public event_log {
public:
    void write(event_severity severity, std::string_view what,
               std::initializer_list<event_field> fields) noexcept override {
        std::string line = std::to_string(static_cast<int>(severity)) + " " + std::string(what);
        for (const event_field& each : fields)
            line += " " + std::string(each.name) + "=" + std::string(each.value);
        const lock_guard held(mutex_);
        is_reached_ = true;
        changed_.notify_all();
        while (is_blocked_)
            changed_.wait(mutex_);
        lines_.push_back(std::move(line));
    }
    void block() {
        const lock_guard held(mutex_);
        is_blocked_ = true;
        is_reached_ = false;
    }
    void unblock() {
        const lock_guard held(mutex_);
        is_blocked_ = false;
        changed_.notify_all();
    }
    void wait_until_reached() {
        const lock_guard held(mutex_);
        while (not is_reached_)
            changed_.wait(mutex_);
    }
    [[nodiscard]] std::vector<std::string> lines() {
        const lock_guard held(mutex_);
        return lines_;
    }

private:
    mutex mutex_;
    std::condition_variable_any changed_;
    bool is_blocked_ SLUICE_GUARDED_BY(mutex_) = false;
    bool is_reached_ SLUICE_GUARDED_BY(mutex_) = false;
    std::vector<std::string> lines_ SLUICE_GUARDED_BY(mutex_);
};

TEST(log_thread, writes_events_with_their_fields_in_order) {
    recording_log to;
    log_thread log(to);
    log.write(event_severity::info, "user logged on", {{"user", "ann"}, {"peer", "192.0.2.1"}});
    log.write(event_severity::error, "share lost", {});
    ASSERT_TRUE(log.flush(1min));
    EXPECT_EQ(to.lines(),
              (std::vector<std::string>{"1 user logged on user=ann peer=192.0.2.1", "3 share lost"}));
}

TEST(log_thread, write_returns_while_the_log_blocks_and_counts_the_events_that_do_not_fit) {
    recording_log to;
    to.block();
    log_thread log(to);
    log.write(event_severity::info, "first", {});
    to.wait_until_reached();  // now the queue is empty, and stays as it is filled
    const std::string large(log_thread::bytes_max / 4, 'x');
    for (int i = 0; i != 5; ++i)
        log.write(event_severity::info, large, {});
    EXPECT_EQ(log.dropped(), 2U);
    to.unblock();
    ASSERT_TRUE(log.flush(1min));
    const std::vector<std::string> lines = to.lines();
    ASSERT_EQ(lines.size(), 5U);
    EXPECT_EQ(lines[0], "1 first");
    EXPECT_EQ(lines[3], "1 " + large);
    EXPECT_EQ(lines[4], "2 log lines dropped: log queue full lines=2");
}

TEST(log_thread, queues_no_event_that_is_less_severe_than_asked_for) {
    recording_log to;
    log_thread log(to, event_severity::warning);
    log.write(event_severity::info, "quiet", {});
    log.write(event_severity::warning, "loud", {});
    ASSERT_TRUE(log.flush(1min));
    EXPECT_EQ(to.lines(), std::vector<std::string>{"2 loud"});
}

TEST(log_thread, flush_ends_although_the_log_blocks) {
    recording_log to;
    to.block();
    log_thread log(to);
    log.write(event_severity::info, "stuck", {});
    EXPECT_FALSE(log.flush(0ms));
    to.unblock();
    EXPECT_TRUE(log.flush(1min));
}

TEST(log_thread, event_that_never_fits_is_counted) {
    recording_log to;
    log_thread log(to);
    log.write(event_severity::info, std::string(log_thread::bytes_max, 'x'), {});
    log.write(event_severity::info, "next", {});
    ASSERT_TRUE(log.flush(1min));
    std::vector<std::string> lines = to.lines();
    std::ranges::sort(lines);
    EXPECT_EQ(lines, (std::vector<std::string>{"1 next", "2 log lines dropped: log queue full lines=1"}));
}

TEST(log_thread, queued_events_are_written_before_it_ends) {
    recording_log to;
    to.block();
    {
        log_thread log(to);
        log.write(event_severity::info, "first", {});
        to.wait_until_reached();
        log.write(event_severity::info, "last", {});
        to.unblock();
    }
    EXPECT_EQ(to.lines(), (std::vector<std::string>{"1 first", "1 last"}));
}

TEST(log_thread, threads_lose_no_event) {
    recording_log to;
    constexpr std::size_t each = 500;
    {
        log_thread log(to);
        std::vector<std::thread> threads;
        for (int i = 0; i != 3; ++i)
            threads.emplace_back([&log] {
                for (std::size_t n = 0; n != each; ++n)
                    log.write(event_severity::info, "event", {{"name", "value"}});
            });
        for (std::thread& one : threads)
            one.join();
        EXPECT_EQ(log.dropped(), 0U);
    }
    EXPECT_EQ(to.lines().size(), 3 * each);
}

}  // namespace
}  // namespace sluice::smb::server
