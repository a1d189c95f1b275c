#include "sluice/cli/serve/reload_requests.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

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
        return {.read = [reading = reading_, reads = reads_]() -> reload_requests::read_options {
                    if (reading->exchange(true)) ADD_FAILURE() << "two reloads read at a time";
                    ++*reads;
                    *reading = false;
                    return options_of({"a", "hung", "b"});
                },
                .find_root = [hang = hang_,
                              calls = calls_](const std::string& path) -> std::optional<share_root> {
                    if (path == "hung") {
                        ++*calls;
                        hang->acquire();
                    }
                    return share_root{.device = 1, .inode = 2, .is_directory = true};
                },
                .reload =
                    [this](const reload_requests::read_options& options, const share_roots& answered) {
                        found_.push_back({options, answered});
                        return needed_;
                    },
                .within = within_};
    }
    static bool is_called(const reload_requests& by, const std::string& path) {
        const std::vector<std::string> all = by.unanswered();
        return std::ranges::find(all, path) != all.end();
    }
    void run_until_reloads(std::size_t count) {
        while (found_.size() < count)
            (void)loop_->run();
    }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer(0).value();
    io::io_multiplexer::work_guard until_end_{*loop_};
    // With the threads, which may end after the test.
    std::shared_ptr<std::counting_semaphore<>> hang_ = std::make_shared<std::counting_semaphore<>>(0);
    std::chrono::nanoseconds within_ = std::chrono::milliseconds(1);
    std::shared_ptr<std::atomic<bool>> reading_ = std::make_shared<std::atomic<bool>>(false);
    std::shared_ptr<std::atomic<int>> reads_ = std::make_shared<std::atomic<int>>(0);
    std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);  // of "hung"
    std::vector<std::string> needed_;
    struct reload {
        reload_requests::read_options options;
        share_roots answered;
    };
    std::vector<reload> found_;
};

TEST_F(reloads, have_no_root_of_a_share_that_does_not_answer_in_time) {
    within_ = std::chrono::milliseconds(200);
    reload_requests requests(*loop_, actions());
    requests.add();
    run_until_reloads(1);
    ASSERT_TRUE(found_[0].options);
    EXPECT_EQ(found_[0].options->shares.size(), 3U);
    EXPECT_FALSE(found_[0].answered.contains("hung"));
    EXPECT_THAT(requests.unanswered(), testing::Contains("hung"));
    hang_->release(10);
}

TEST_F(reloads, have_the_roots_of_all_shares_if_all_answer) {
    within_ = std::chrono::hours(1);
    reload_requests requests(*loop_, actions());
    hang_->release(10);
    requests.add();
    run_until_reloads(1);
    EXPECT_EQ(found_[0].answered.size(), 3U);
    EXPECT_TRUE(found_[0].answered.at("a")->is_directory);
    EXPECT_FALSE(requests.is_busy());
}

TEST_F(reloads, find_the_roots_of_all_users_by_one_call) {
    within_ = std::chrono::hours(1);
    const auto finds = std::make_shared<std::atomic<int>>(0);
    auto how = actions();
    how.read = [] {
        auto options = options_of({"a", "homes/alice", "homes/bob"});
        options.homes = "homes";
        options.shares[1].is_home = options.shares[2].is_home = true;
        return reload_requests::read_options(options);
    };
    how.find_home_roots = [finds](const serve_options& options) {
        ++*finds;
        EXPECT_EQ(options.homes, "homes");
        return share_roots{{"homes/alice", share_root{.device = 1, .inode = 3, .is_directory = true}},
                           {"homes/bob", std::unexpected(std::string("missing"))}};
    };
    reload_requests requests(*loop_, how);
    requests.add();
    run_until_reloads(1);
    EXPECT_EQ(found_[0].answered.size(), 3U);
    EXPECT_EQ(found_[0].answered.at("homes/alice")->inode, 3U);
    EXPECT_EQ(*finds, 1);
}

TEST_F(reloads, have_no_roots_of_users_whose_file_system_does_not_answer_in_time) {
    within_ = std::chrono::milliseconds(200);
    auto how = actions();
    how.read = [] {
        auto options = options_of({"a", "homes/alice"});
        options.homes = "homes";
        options.shares[1].is_home = true;
        return reload_requests::read_options(options);
    };
    how.find_home_roots = [hang = hang_](const serve_options&) {
        hang->acquire();
        return share_roots{};
    };
    needed_ = {"homes/*"};
    reload_requests requests(*loop_, how);
    requests.add();
    run_until_reloads(1);
    EXPECT_FALSE(found_[0].answered.contains("homes/alice"));
    EXPECT_THAT(requests.unanswered(), testing::Contains("homes/*"));
    hang_->release(10);
    run_until_reloads(2);  // it was needed, and has answered
}

TEST_F(reloads, call_a_file_system_once_until_it_answers) {
    within_ = std::chrono::milliseconds(1);
    reload_requests requests(*loop_, actions());
    for (std::size_t i = 1; i != 6; ++i) {
        requests.add();
        run_until_reloads(i);
    }
    while (calls_->load() == 0) {  // a reload may have been over before its threads ran
        const std::size_t before = found_.size();
        requests.add();
        run_until_reloads(before + 1);
    }
    EXPECT_EQ(calls_->load(), 1);
    hang_->release(10);
}

TEST_F(reloads, are_repeated_when_a_file_system_answers_that_was_needed) {
    within_ = std::chrono::milliseconds(200);
    needed_ = {"hung"};
    reload_requests requests(*loop_, actions());
    requests.add();
    run_until_reloads(1);
    hang_->release(10);
    run_until_reloads(2);
    EXPECT_TRUE(found_[1].answered.contains("hung"));
}

// The file system of "hung" answers during the second reload, which "other" keeps in progress. What
// it answers belongs to the first reload, which is over. The third one asks it again.
TEST_F(reloads, do_not_use_an_answer_to_an_earlier_reload) {
    auto how = actions();
    how.read = [] { return reload_requests::read_options(options_of({"hung", "other"})); };
    const auto delays_other = std::make_shared<std::atomic<bool>>(false);
    const auto other = std::make_shared<std::counting_semaphore<>>(0);
    how.find_root = [=, hang = hang_, calls = calls_](const std::string& path) -> std::optional<share_root> {
        if (path == "other") {
            if (*delays_other) other->acquire();
            return share_root{.device = 1, .inode = 1, .is_directory = true};
        }
        const int number = ++*calls;
        hang->acquire();
        return share_root{.device = 1, .inode = static_cast<std::uint64_t>(number), .is_directory = true};
    };
    how.within = std::chrono::milliseconds(500);
    needed_ = {"hung"};
    reload_requests requests(*loop_, how);
    requests.add();
    run_until_reloads(1);
    ASSERT_FALSE(found_[0].answered.contains("hung"));
    while (calls_->load() == 0)
        std::this_thread::yield();

    *delays_other = true;
    requests.add();
    while (not is_called(requests, "other"))
        std::this_thread::yield();
    hang_->release(1);
    while (is_called(requests, "hung"))
        std::this_thread::yield();
    *delays_other = false;
    other->release(1);
    run_until_reloads(2);
    EXPECT_FALSE(found_[1].answered.contains("hung")) << "the answer was to the first reload";

    hang_->release(10);
    run_until_reloads(3);
    ASSERT_TRUE(found_[2].answered.contains("hung"));
    EXPECT_EQ(found_[2].answered.at("hung")->inode, 2U);
}

TEST_F(reloads, are_merged_while_one_is_in_progress) {
    within_ = std::chrono::hours(1);
    reload_requests requests(*loop_, actions());
    for (int i = 0; i != 10; ++i)
        requests.add();
    hang_->release(10);
    run_until_reloads(2);
    EXPECT_EQ(reads_->load(), 2);
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
        while (requests.is_busy())
            std::this_thread::yield();
    }
    (void)loop_->try_run();
    EXPECT_TRUE(found_.empty());
}

TEST_F(reloads, report_a_configuration_that_cannot_be_read) {
    within_ = std::chrono::hours(1);
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
