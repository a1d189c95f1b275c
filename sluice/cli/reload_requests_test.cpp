#include "sluice/cli/reload_requests.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <semaphore>

#include "sluice/io/epoll/epoll_multiplexer.hpp"

namespace sluice::cli {
namespace {

class reloads : public testing::Test {
protected:
    static serve_options options_of(std::vector<std::string> paths) {
        serve_options options;
        for (std::string& each : paths) {
            auto& share = options.shares.emplace_back();
            share.name = each;
            share.path = std::move(each);
        }
        return options;
    }
    reload_requests::actions actions() {
        return {.read = [this]() -> reload_requests::read_options {
                    if (reading_.exchange(true)) ADD_FAILURE() << "two reloads read at a time";
                    ++reads_;
                    reading_ = false;
                    return options_of({"a", "hung", "b"});
                },
                .ask =
                    [hang = hang_](const std::string& path) {
                        if (path == "hung") hang->acquire();
                    },
                .reload = [this](const reload_requests::outcome& found) { found_.push_back(found); },
                .within = within_};
    }
    void run_until_reloads(std::size_t count) {
        while (found_.size() < count)
            (void)loop_->run();
    }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer(0).value();
    io::io_multiplexer::work_guard until_end_{*loop_};
    // With the threads that hang.
    std::shared_ptr<std::counting_semaphore<>> hang_ = std::make_shared<std::counting_semaphore<>>(0);
    std::chrono::nanoseconds within_ = std::chrono::milliseconds(1);
    std::atomic<bool> reading_{false};
    std::atomic<int> reads_{0};
    std::vector<reload_requests::outcome> found_;
};

TEST_F(reloads, name_the_shares_that_do_not_answer_in_time) {
    reload_requests requests(*loop_, actions());
    requests.add();
    run_until_reloads(1);
    ASSERT_TRUE(found_[0].options);
    EXPECT_EQ(found_[0].options->shares.size(), 3U);
    EXPECT_NE(std::ranges::find(found_[0].silent, "hung"), found_[0].silent.end());
    hang_->release(10);
}

TEST_F(reloads, name_no_share_if_all_answer) {
    within_ = std::chrono::hours(1);
    reload_requests requests(*loop_, actions());
    hang_->release(10);
    requests.add();
    run_until_reloads(1);
    EXPECT_TRUE(found_[0].silent.empty());
}

TEST_F(reloads, are_merged_while_one_is_in_progress) {
    within_ = std::chrono::hours(1);
    reload_requests requests(*loop_, actions());
    for (int i = 0; i != 10; ++i)
        requests.add();
    hang_->release(10);
    run_until_reloads(2);
    EXPECT_EQ(reads_.load(), 2);
    EXPECT_EQ(found_.size(), 2U);
}

TEST_F(reloads, have_no_effect_after_the_end) {
    within_ = std::chrono::hours(1);
    {
        reload_requests requests(*loop_, actions());
        requests.add();
        requests.end();
        requests.add();
        hang_->release(10);
    }
    (void)loop_->try_run();
    EXPECT_TRUE(found_.empty());
}

TEST_F(reloads, report_a_configuration_that_cannot_be_read) {
    auto how = actions();
    how.read = [] { return reload_requests::read_options(std::unexpected("line 3: no such setting")); };
    reload_requests requests(*loop_, std::move(how));
    requests.add();
    run_until_reloads(1);
    ASSERT_FALSE(found_[0].options);
    EXPECT_EQ(found_[0].options.error(), "line 3: no such setting");
}

}  // namespace
}  // namespace sluice::cli
