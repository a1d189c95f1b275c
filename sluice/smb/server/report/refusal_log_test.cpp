#include "sluice/smb/server/report/refusal_log.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::smb::server {
namespace {

class kept_log final : public event_log {
public:
    void write(event_severity, std::string_view what,
               std::initializer_list<event_field> fields) noexcept override {
        sentences.emplace_back(what);
        paths.emplace_back((fields.begin() + 2)->value);
    }
    std::vector<std::string> sentences;
    std::vector<std::string> paths;
};

[[nodiscard]] refusal refusal_of(std::string_view path) {
    return {.user = "anna", .share = "data", .path = path, .rule = "a rule", .remedy = "a remedy"};
}

TEST(refusal_log, explains_the_same_refusal_once_until_it_is_long_ago) {
    kept_log log;
    simulated_clock clock;
    refusal_log refusals(log, clock);
    refusals.explain(refusal_of("a"));
    refusals.explain(refusal_of("a"));
    EXPECT_EQ(log.paths.size(), 1U);
    clock.advance(refusal_log::repeated_after);
    refusals.explain(refusal_of("a"));
    EXPECT_EQ(log.paths.size(), 2U);
}

TEST(refusal_log, explains_each_file_by_itself) {
    kept_log log;
    simulated_clock clock;
    refusal_log refusals(log, clock);
    refusals.explain(refusal_of("a"));
    refusals.explain(refusal_of("b"));
    EXPECT_EQ(log.paths, (std::vector<std::string>{"a", "b"}));
}

TEST(refusal_log, says_when_it_falls_silent_and_speaks_again_in_the_next_interval) {
    kept_log log;
    simulated_clock clock;
    refusal_log refusals(log, clock);
    for (std::size_t i = 0; i != 2 * refusal_log::explained_per_interval_max; ++i)
        refusals.explain(refusal_of(std::to_string(i)));
    ASSERT_EQ(log.sentences.size(), refusal_log::explained_per_interval_max);
    EXPECT_NE(log.sentences.back(), log.sentences.front());
    clock.advance(refusal_log::interval);
    refusals.explain(refusal_of("later"));
    EXPECT_EQ(log.paths.back(), "later");
}

}  // namespace
}  // namespace sluice::smb::server
