// The monitors of this directory, used by several threads at once.

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "sluice/base/held_mutexes.hpp"
#include "sluice/smb/server/core/threads_testing.hpp"
#include "sluice/smb/server/report/bounded_log.hpp"
#include "sluice/smb/server/report/limit_rejections.hpp"
#include "sluice/smb/server/report/refusal_log.hpp"

namespace sluice::smb::server {
namespace {

constexpr std::size_t threads = 4;
constexpr std::uint64_t rounds = 500;

class counting_log final : public event_log {
public:
    void write(event_severity, std::string_view,
               std::initializer_list<event_field> fields) noexcept override {
        EXPECT_TRUE(held_mutexes::none());
        lines.fetch_add(1, std::memory_order_relaxed);
        for (const event_field& each : fields)
            if (each.name == "rejected") rejected.fetch_add(std::stoull(std::string(each.value)));
    }
    std::atomic<std::uint64_t> lines{0};
    std::atomic<std::uint64_t> rejected{0};
};

TEST(limit_rejections, of_several_threads_are_all_counted_and_logged_once) {
    counting_log log;
    simulated_clock clock;
    limit_rejections rejections(log, clock);
    run_at_once(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i != rounds; ++i)
            rejections.add(limit::opens, "client");
    });
    EXPECT_EQ(log.lines.load(), 1U);
    clock.advance(limit_rejections::logged_every);
    rejections.add(limit::opens, "client");
    EXPECT_EQ(rejections.of(limit::opens), threads * rounds + 1);
    EXPECT_EQ(log.rejected.load(), threads * rounds + 1);
}

TEST(refusal_log, explains_a_refusal_of_several_threads_once) {
    counting_log log;
    simulated_clock clock;
    refusal_log refusals(log, clock);
    run_at_once(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i != rounds; ++i) {
            const std::string path = std::to_string(i % 8);
            refusals.explain({.user = "u", .share = "s", .path = path, .rule = "r", .remedy = "x"});
        }
    });
    EXPECT_EQ(log.lines.load(), 8U);
}

TEST(bounded_log, bounds_the_lines_of_several_threads_together) {
    counting_log to;
    simulated_clock clock;
    bounded_log log(to, clock);
    run_at_once(threads, [&](std::size_t) {
        for (std::uint64_t i = 0; i != rounds; ++i)
            log.write(event_severity::info, "event", {{"peer", "10.0.0.1:1"}});
    });
    EXPECT_EQ(to.lines.load(), bounded_log::lines_of_peer_max + 1) << "and the line about the omitted ones";
}

}  // namespace
}  // namespace sluice::smb::server
