#include "sluice/cli/status/background_findings.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <stdexcept>
#include <string>

namespace sluice::cli {
namespace {

struct background_checks : testing::Test {
    // A run waits for `may_end`, and finds its own number.
    std::vector<finding> run() {
        const int number = ++runs;
        has_begun.release();
        may_end.acquire();
        return {{.what = std::to_string(number)}};
    }
    std::unique_ptr<background_findings> start() {
        auto started = background_findings::start([this] { return run(); }, clock);
        EXPECT_TRUE(started);
        return *std::move(started);
    }
    void finish(const background_findings& of) {
        may_end.release();
        while (of.is_pending())
            std::this_thread::yield();
    }
    static std::vector<finding> found_by(background_findings& of) {
        std::vector<finding> found;
        of.add_findings(found);
        return found;
    }

    simulated_clock clock;
    std::atomic<int> runs{0};
    std::counting_semaphore<> has_begun{0};
    std::counting_semaphore<> may_end{0};
};

TEST_F(background_checks, the_first_run_begins_at_the_start_without_a_wait_for_its_end) {
    const auto checked = start();
    has_begun.acquire();
    EXPECT_TRUE(checked->is_pending());
    ASSERT_EQ(found_by(*checked).size(), 1U);
    EXPECT_EQ(found_by(*checked)[0].what, "the checks of this host are in progress");
    finish(*checked);
    ASSERT_EQ(found_by(*checked).size(), 1U);
    EXPECT_EQ(found_by(*checked)[0].what, "1");
}

TEST_F(background_checks, old_findings_are_kept_until_a_request_for_fresh_ones) {
    const auto checked = start();
    finish(*checked);
    clock.advance(background_findings::fresh_for - std::chrono::nanoseconds(1));
    checked->refresh();
    EXPECT_FALSE(checked->is_pending());
    clock.advance(std::chrono::nanoseconds(1));
    EXPECT_FALSE(checked->is_pending());
    checked->refresh();
    EXPECT_TRUE(checked->is_pending());
    EXPECT_EQ(found_by(*checked)[0].what, "1") << "the old ones are shown until it ends";
    finish(*checked);
    EXPECT_EQ(found_by(*checked)[0].what, "2");
}

TEST_F(background_checks, a_run_that_hangs_is_reported_and_is_the_only_one) {
    const auto checked = start();
    has_begun.acquire();
    clock.advance(background_findings::overdue_after);
    EXPECT_FALSE(checked->is_pending());
    ASSERT_EQ(found_by(*checked).size(), 1U);
    EXPECT_EQ(found_by(*checked)[0].what, "the checks of this host did not end within 10 s");
    clock.advance(background_findings::fresh_for);
    checked->refresh();
    EXPECT_EQ(runs.load(), 1);
    may_end.release();
}

TEST_F(background_checks, a_check_that_fails_is_a_finding) {
    const auto checked =
        background_findings::start([]() -> std::vector<finding> { throw std::runtime_error("why"); }, clock);
    ASSERT_TRUE(checked);
    while ((*checked)->is_pending())
        std::this_thread::yield();
    const auto found = found_by(**checked);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].evidence, "why");
}

TEST_F(background_checks, the_number_of_findings_is_limited) {
    const auto checked = background_findings::start(
        [] { return std::vector<finding>(background_findings::findings_max + 1); }, clock);
    ASSERT_TRUE(checked);
    while ((*checked)->is_pending())
        std::this_thread::yield();
    EXPECT_EQ(found_by(**checked).size(), background_findings::findings_max);
}

}  // namespace
}  // namespace sluice::cli
