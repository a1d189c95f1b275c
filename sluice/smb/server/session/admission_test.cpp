#include "sluice/smb/server/session/admission.hpp"

#include <gtest/gtest.h>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/server/report/silent_log_testing.hpp"
#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {
namespace {

class admissions : public testing::Test {
protected:
    static server_bounds two_of_each() {
        server_bounds bounds;
        bounds.shared.fill(10);
        bounds.connections_without_session = 2;
        bounds.sessions_in_progress = 2;
        return bounds;
    }
    static admitted_connection from(std::string_view address) {
        return {nullptr, client_address(io::socket_address::ip(address, 445).value())};
    }
    session made(std::uint64_t id) { return {id, {}, *std::pmr::get_default_resource()}; }

    simulated_clock clock_;
    silent_log log_;
    limit_rejections rejections_{log_, clock_};
    client_quotas quotas_{two_of_each().shared, rejections_};
    admission admission_{two_of_each(), quotas_, rejections_};
};

TEST_F(admissions, evict_the_oldest_connection_of_the_address_with_most_of_them) {
    admitted_connection honest = from("10.0.0.1");
    admitted_connection first = from("10.0.0.9");
    admitted_connection second = from("10.0.0.9");
    // The admission only passes the handle on.
    first.handle = {std::make_shared<int>(), reinterpret_cast<connection_handle*>(&first)};
    EXPECT_EQ(admission_.enter(first), nullptr);
    EXPECT_EQ(admission_.enter(second), nullptr);
    EXPECT_EQ(admission_.enter(honest), first.handle);
    EXPECT_EQ(admission_.connections_without_session(), 2U);
    EXPECT_EQ(rejections_.of(limit::connections_without_session), 1U);
    for (admitted_connection* const one : {&honest, &first, &second})
        admission_.leave(*one);
    EXPECT_EQ(admission_.connections_without_session(), 0U);
}

TEST_F(admissions, evict_the_oldest_session_in_progress_and_count_those_of_a_connection) {
    admitted_connection by = from("10.0.0.9");
    session first = made(1);
    session second = made(2);
    session third = made(3);
    EXPECT_EQ(admission_.begin(first, by), std::nullopt);
    EXPECT_EQ(admission_.begin(second, by), std::nullopt);
    EXPECT_EQ(admission_.begin(third, by), 1U);
    EXPECT_EQ(by.sessions_in_progress, 3U) << "until the evicted one has ended";
    for (session* const one : {&first, &second, &third})
        admission_.end(*one);
    EXPECT_EQ(by.sessions_in_progress, 0U);
    by.sessions_in_progress = limits::sessions_in_progress_per_connection_max;
    EXPECT_FALSE(admission_.may_begin(by));
}

}  // namespace
}  // namespace sluice::smb::server
