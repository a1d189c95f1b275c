#include "sluice/smb/server/report/bounded_log.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::smb::server {
namespace {

class kept_log final : public event_log {
public:
    void write(event_severity, std::string_view what,
               std::initializer_list<event_field> fields) noexcept override {
        lines.emplace_back(what);
        for (const event_field& one : fields)
            lines.back() += " " + std::string(one.value);
    }
    std::vector<std::string> lines;
};

class bounded_log_of_a_flood : public testing::Test {
protected:
    void flood(event_severity severity, std::size_t lines) {
        for (std::size_t i = 0; i != lines; ++i)
            log_.write(severity, "logon failed", {{"peer", "10.0.0.1:" + std::to_string(i)}});
    }
    simulated_clock clock_;
    kept_log kept_;
    bounded_log log_{kept_, clock_};
};

TEST_F(bounded_log_of_a_flood, writes_a_bounded_number_of_lines_and_says_that_there_are_more) {
    flood(event_severity::warning, 1000);
    ASSERT_EQ(kept_.lines.size(), bounded_log::lines_of_peer_max + 1);
    EXPECT_NE(kept_.lines.back().find("suppressed"), std::string::npos);
    log_.write(event_severity::warning, "user logged on", {{"peer", "10.0.0.1:1"}});
    EXPECT_EQ(kept_.lines.back(), "user logged on 10.0.0.1:1") << "another event has lines of its own";
    log_.write(event_severity::warning, "logon failed", {{"peer", "10.0.0.2:1"}});
    EXPECT_EQ(kept_.lines.back(), "logon failed 10.0.0.2:1") << "and so has another peer";
}

TEST_F(bounded_log_of_a_flood, writes_the_number_of_suppressed_lines_in_the_next_interval) {
    flood(event_severity::warning, bounded_log::lines_of_peer_max + 7);
    clock_.advance(bounded_log::interval);
    kept_.lines.clear();
    flood(event_severity::warning, 1);
    ASSERT_EQ(kept_.lines.size(), 2U);
    EXPECT_EQ(kept_.lines.front(), "log lines suppressed logon failed 10.0.0.1 7");
    EXPECT_EQ(kept_.lines.back(), "logon failed 10.0.0.1:0");
}

TEST_F(bounded_log_of_a_flood, from_many_peers_is_bounded_as_well) {
    for (int i = 0; i != 10'000; ++i)
        log_.write(event_severity::warning, "logon failed", {{"peer", "10.0.0." + std::to_string(i) + ":1"}});
    EXPECT_LE(kept_.lines.size(), 3 * (bounded_log::lines_max + 1)) << "the entries are forgotten twice";
}

TEST_F(bounded_log_of_a_flood, writes_every_line_that_was_asked_for_with_verbose) {
    flood(event_severity::detail, 1000);
    EXPECT_EQ(kept_.lines.size(), 1000U);
}

}  // namespace
}  // namespace sluice::smb::server
