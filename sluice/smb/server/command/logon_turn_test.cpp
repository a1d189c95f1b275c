#include <chrono>
#include <span>
#include <utility>

#include "tests/smb_simulation/world/bounded_server.hpp"

// The turns in which the server checks the proofs of an address that guesses passwords.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using server::limit;
using wire::nt_status;

// Attempts that an address may not have checked yet.
class password_guessing : public bounded_server {
protected:
    void guess(unsigned times) {
        for (unsigned i = 0; i != times; ++i)
            EXPECT_EQ(connect().log_on("honest", "wrong"), nt_status::logon_failure);
    }
    std::chrono::nanoseconds time_to_log_on(const std::string& from) {
        const auto before = where_.clock.steady_now();
        EXPECT_EQ(connect(from).log_on("honest", "p"), nt_status::success);
        return where_.clock.steady_now() - before;
    }
};

TEST_F(password_guessing, delays_the_check_of_its_address_and_no_other) {
    guess(server::limits::logon_failures_free + 4);
    EXPECT_LT(time_to_log_on("10.0.0.2"), std::chrono::milliseconds(50));
    EXPECT_GE(time_to_log_on("10.0.0.1"), std::chrono::milliseconds(500));
}

TEST_F(password_guessing, is_not_forgiven_by_a_success) {
    guess(server::limits::logon_failures_free + 4);
    const auto before = where_.clock.steady_now();
    EXPECT_GE(time_to_log_on("10.0.0.1"), std::chrono::milliseconds(500));
    guess(1);
    const auto between = where_.clock.steady_now();
    EXPECT_GE(between - before, std::chrono::milliseconds(500)) << "a guess comes after the pause";
    (void)time_to_log_on("10.0.0.1");
    guess(1);
    EXPECT_GE(where_.clock.steady_now() - between, std::chrono::milliseconds(1000)) << "which still grows";
}

TEST_F(password_guessing, delays_the_users_of_its_address_once_and_not_each_after_the_other) {
    guess(server::limits::logon_failures_free + 8);
    EXPECT_GE(time_to_log_on("10.0.0.1"), std::chrono::milliseconds(500));
    EXPECT_LT(time_to_log_on("10.0.0.1"), std::chrono::milliseconds(50));
    clients_.clear();
    guess(1);
    std::vector<std::pair<compliant_client*, std::uint64_t>> sent;
    for (std::size_t i = 0; i != server::limits::logon_waiters_per_address_max; ++i) {
        compliant_client& one = connect();
        sent.emplace_back(&one, one.send_proof("honest", "p"));
    }
    EXPECT_EQ(sent.front().first->answer_to(sent.front().second).status(), nt_status::success);
    const auto before = where_.clock.steady_now();
    for (const auto& [one, id] : std::span(sent).subspan(1))
        EXPECT_EQ(one->answer_to(id).status(), nt_status::success);
    EXPECT_LT(where_.clock.steady_now() - before, std::chrono::milliseconds(1000));
}

TEST_F(password_guessing, in_parallel_has_few_attempts_wait_and_the_others_rejected_unchecked) {
    guess(server::limits::logon_failures_free + 1);
    std::vector<std::pair<compliant_client*, std::uint64_t>> sent;
    for (std::size_t i = 0; i != server::limits::logon_waiters_per_address_max; ++i) {
        compliant_client& one = connect();
        sent.emplace_back(&one, one.send_proof("honest", "wrong"));
    }
    EXPECT_EQ(where_.server->context().logons.waiting(), sent.size());
    compliant_client& beyond = connect();
    EXPECT_EQ(beyond.answer_to(beyond.send_proof("honest", "p")).status(), nt_status::request_not_accepted);
    EXPECT_EQ(rejections(limit::logon_waiters_per_address), 1U);
    for (const auto& [one, id] : sent)
        EXPECT_EQ(one->answer_to(id).status(), nt_status::logon_failure) << "checked when its turn comes";
    EXPECT_EQ(where_.server->context().logons.waiting(), 0U);
}

TEST_F(password_guessing, that_closes_its_connection_before_its_turn_is_never_checked) {
    guess(server::limits::logon_failures_free + 5);
    compliant_client& abandoned = connect();
    (void)abandoned.send_proof("honest", "p");
    (void)connect("10.0.0.3");  // until the proof has arrived
    EXPECT_EQ(where_.server->context().logons.waiting(), 1U);
    const auto sessions = where_.server->gauges().sessions;
    abandoned.close_connection();
    EXPECT_LT(time_to_log_on("10.0.0.2"), std::chrono::milliseconds(50));
    EXPECT_EQ(where_.server->context().logons.waiting(), 0U);
    EXPECT_EQ(where_.server->gauges().sessions, sessions)
        << "its own session is gone, and that of the other address there";
}

TEST_F(password_guessing, in_bindings_of_one_session_delays_those_of_all_sessions_of_the_user) {
    compliant_client& first = log_on("honest");
    compliant_client& second = log_on("honest");
    for (unsigned i = 0; i != server::limits::logon_failures_free + 4; ++i)
        EXPECT_EQ(connect().bind_to(first, "greedy", "wrong"), nt_status::logon_failure);
    const auto before = where_.clock.steady_now();
    EXPECT_EQ(connect().bind_to(second, "greedy", "wrong"), nt_status::logon_failure);
    EXPECT_GE(where_.clock.steady_now() - before, std::chrono::milliseconds(500));
}

TEST_F(password_guessing, does_not_delay_channels_of_a_session_of_its_address) {
    compliant_client& first = log_on("honest");
    guess(server::limits::logon_failures_free + 5);
    compliant_client& second = connect();
    const auto before = where_.clock.steady_now();
    EXPECT_EQ(second.bind_to(first, "honest", "p"), nt_status::success);
    EXPECT_LT(where_.clock.steady_now() - before, std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace sluice::smb_simulation
