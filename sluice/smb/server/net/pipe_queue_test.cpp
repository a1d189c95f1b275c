#include "sluice/smb/server/net/pipe_queue.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/smb/server/report/silent_log_testing.hpp"

namespace sluice::smb::server {
namespace {

using wire::nt_status;

class queued_requests : public testing::Test {
protected:
    static shared_bounds many() {
        shared_bounds bounds{};
        bounds.fill(1000);
        return bounds;
    }
    struct queued {
        queued(queued_requests& in, const client_reference& by)
            : granted(*in.loop_), place(std::in_place, in.queue_, by, granted) {}
        [[nodiscard]] bool is_granted() const { return place->is_granted(); }
        one_shot_event<nt_status> granted;
        std::optional<pipe_queue::place> place;
    };
    std::unique_ptr<queued> add(const client_reference& by) { return std::make_unique<queued>(*this, by); }

    std::unique_ptr<io::io_multiplexer> loop_ = io::make_epoll_multiplexer().value();
    simulated_clock clock_;
    silent_log log_;
    limit_rejections rejections_{log_, clock_};
    client_quotas quotas_{many(), rejections_};
    client_reference greedy_ = quotas_.user("greedy");
    client_reference other_ = quotas_.user("other");
    pipe_queue queue_;
};

TEST_F(queued_requests, are_granted_at_once_if_no_other_is) {
    for (int i = 0; i != 2; ++i) {
        const auto one = add(greedy_);
        EXPECT_TRUE(one->is_granted());
        EXPECT_FALSE(one->granted.is_set());
    }
}

TEST_F(queued_requests, are_granted_to_each_other_client_before_the_second_of_a_client) {
    auto first = add(greedy_);
    std::vector<std::unique_ptr<queued>> many;
    for (int i = 0; i != 3; ++i)
        many.push_back(add(greedy_));
    auto of_other = add(other_);
    auto again = add(other_);
    first.reset();
    EXPECT_TRUE(many[0]->is_granted());
    EXPECT_EQ(many[0]->granted.value(), nt_status::success);
    many[0].reset();
    EXPECT_TRUE(of_other->is_granted());
    of_other.reset();
    EXPECT_TRUE(many[1]->is_granted());
    many[1].reset();
    EXPECT_TRUE(again->is_granted());
    again.reset();
    EXPECT_TRUE(many[2]->is_granted());
}

TEST_F(queued_requests, that_leave_are_not_granted) {
    auto first = add(greedy_);
    auto second = add(greedy_);
    auto third = add(greedy_);
    auto of_other = add(other_);
    second.reset();
    of_other.reset();
    EXPECT_FALSE(third->is_granted());
    first.reset();
    EXPECT_TRUE(third->is_granted());
    third.reset();
    EXPECT_TRUE(add(other_)->is_granted());
}

}  // namespace
}  // namespace sluice::smb::server
