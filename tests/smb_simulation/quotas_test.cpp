#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/smb_simulation/world/bounded_server.hpp"

// A client cannot starve the others: its share of each resource, and which clients are dropped
// first.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using server::limit;
using wire::command;
using wire::nt_status;

class quotas : public bounded_server {
protected:
    void connect_silently(std::size_t count, const std::string& from = "10.0.0.1") {
        for (std::size_t i = 0; i != count; ++i)
            silent_.push_back(where_.connect(address(from)));
    }
    static nt_status open(compliant_client& by, const std::string& name, bool is_directory = false,
                          wire::file_id* made = nullptr) {
        auto how = compliant_client::for_everything();
        if (is_directory) how.options = wire::create_options::directory_file;
        const auto said = by.answer_to(by.send_create(name, how));
        if (said.status() == nt_status::success and made != nullptr)
            *made = wire::decode_create_reply(said.message()).value().file;
        return said.status();
    }
    static nt_status lock(compliant_client& by, const wire::file_id& file, std::uint64_t offset,
                          bool waits = false) {
        const auto at_once = waits ? wire::lock_flags::none : wire::lock_flags::fail_immediately;
        const wire::raw_lock_element element = wire::encode_lock_element(
            {.offset_bytes = offset, .length_bytes = 1, .flags = wire::lock_flags::exclusive | at_once});
        const wire::lock_args args{.file = file, .elements = wire::lock_list(std::span(&element, 1))};
        return by.call(command::lock, args).status();
    }
    static std::uint64_t watch(compliant_client& by, const wire::file_id& directory) {
        return by.send(
            command::change_notify,
            wire::change_notify_args{
                .output_bytes_max = 1000, .file = directory, .filter = wire::completion_filter(0xfff)});
    }
};

TEST_F(quotas, silent_connections_of_one_address_are_closed_for_a_client_of_another) {
    compliant_client& early = connect("10.0.0.2");
    connect_silently(5 * bound);
    EXPECT_EQ(where_.server->context().admission.connections_without_session(), bound);
    EXPECT_GT(rejections(limit::connections_without_session), 0U);
    EXPECT_EQ(early.log_on("honest", "p"), nt_status::success)
        << "its connection does not belong to the address with the most connections";
    EXPECT_EQ(connect("10.0.0.3").log_on("honest", "p"), nt_status::success);
}

TEST_F(quotas, unfinished_sessions_of_one_address_are_dropped_for_a_client_of_another) {
    std::size_t begun = 0;
    for (int i = 0; i != 3; ++i) {
        compliant_client& attacker = connect();
        for (int tried = 0; tried != 50; ++tried)
            if (attacker.begin_session() == nt_status::more_processing_required) ++begun;
    }
    EXPECT_GT(begun, bound);
    EXPECT_EQ(where_.server->context().admission.sessions_in_progress(), bound);
    EXPECT_GT(rejections(limit::sessions_in_progress), 0U);
    EXPECT_EQ(connect("10.0.0.2").log_on("honest", "p"), nt_status::success);
}

TEST_F(quotas, too_many_unfinished_sessions_of_one_connection_end_the_oldest) {
    compliant_client& attacker = connect();
    for (std::size_t i = 0; i != server::limits::sessions_in_progress_per_connection_max; ++i)
        ASSERT_EQ(attacker.begin_session(), nt_status::more_processing_required) << i;
    EXPECT_EQ(where_.server->context().admission.sessions_in_progress(), bound) << "the oldest of them ended";
}

TEST_F(quotas, a_user_gets_half_of_the_connections_and_others_can_connect) {
    std::size_t logged_on = 0;
    while (connect().log_on("greedy", "p") == nt_status::success)
        ASSERT_LT(++logged_on, bound);
    EXPECT_EQ(logged_on, bound / 2);
    EXPECT_GT(rejections(limit::connections) + rejections(limit::sessions) + rejections(limit::channels), 0U);
    EXPECT_EQ(connect().log_on("honest", "p"), nt_status::success) << "from the same address, as by NAT";
}

TEST_F(quotas, a_user_with_too_many_sessions_is_not_treated_like_a_password_guesser) {
    for (int i = 0; i != 20; ++i)
        (void)connect().log_on("greedy", "p");
    const auto before = where_.clock.steady_now();
    EXPECT_EQ(connect().log_on("honest", "p"), nt_status::success);
    EXPECT_LT(where_.clock.steady_now() - before, std::chrono::milliseconds(50));
}

TEST_F(quotas, a_session_outlives_a_logon_that_would_replace_it_but_has_no_room) {
    std::vector<compliant_client*> all;
    for (std::size_t i = 0; i != bound / 2; ++i)
        all.push_back(&log_on("greedy"));
    wire::file_id file{};
    ASSERT_EQ(open(*all.front(), "f", false, &file), nt_status::success);
    const auto log_on_again = [&] {
        compliant_client& again = connect();
        again.replace_session(all.front()->current_ids().session);
        return again.log_on("greedy", "p");
    };
    ASSERT_EQ(log_on_again(), nt_status::insufficient_resources);
    EXPECT_EQ(lock(*all.front(), file, 0), nt_status::success) << "with its open";
    EXPECT_EQ(open(*all.front(), "other"), nt_status::success);
    // With room for the new session, the old one ends.
    all.back()->close_connection();
    EXPECT_EQ(log_on_again(), nt_status::success);
    EXPECT_EQ(open(*all.front(), "more"), nt_status::user_session_deleted);
}

TEST_F(quotas, opens_of_a_user_are_rejected_while_others_can_open) {
    compliant_client& greedy = log_on("greedy");
    compliant_client& honest = log_on("honest");
    std::size_t opened = 0;
    while (open(greedy, std::to_string(opened)) == nt_status::success)
        ASSERT_LT(++opened, bound);
    EXPECT_EQ(opened, bound / 2);
    EXPECT_EQ(open(greedy, "more"), nt_status::too_many_opened_files);
    EXPECT_EQ(open(log_on("greedy", "10.0.0.9"), "more"), nt_status::too_many_opened_files)
        << "another session, from another address";
    EXPECT_EQ(open(honest, "of honest"), nt_status::success);
    EXPECT_EQ(rejections(limit::opens), 3U);
}

TEST_F(quotas, opens_that_end_can_be_replaced) {
    compliant_client& greedy = log_on("greedy");
    for (int i = 0; i != 100; ++i) {
        wire::file_id file{};
        ASSERT_EQ(open(greedy, "f", false, &file), nt_status::success) << i;
        ASSERT_EQ(greedy.call(command::close, wire::close_args{.file = file}).status(), nt_status::success);
    }
    EXPECT_EQ(rejections(limit::opens), 0U);
}

TEST_F(quotas, locks_of_a_user_are_rejected_while_others_can_lock) {
    compliant_client& greedy = log_on("greedy");
    compliant_client& honest = log_on("honest");
    wire::file_id of_greedy{};
    wire::file_id of_honest{};
    ASSERT_EQ(open(greedy, "f", false, &of_greedy), nt_status::success);
    ASSERT_EQ(open(honest, "f", false, &of_honest), nt_status::success);
    std::uint64_t locked = 0;
    while (lock(greedy, of_greedy, locked) == nt_status::success)
        ASSERT_LT(++locked, bound);
    EXPECT_EQ(locked, bound / 2);
    EXPECT_EQ(lock(honest, of_honest, 1000), nt_status::success);
    EXPECT_EQ(lock(honest, of_honest, 0), nt_status::lock_not_granted);
    EXPECT_EQ(where_.server->context().quotas.in_use(limit::locks), bound / 2 + 1)
        << "a lock that was not granted does not count";
    EXPECT_EQ(greedy.call(command::close, wire::close_args{.file = of_greedy}).status(), nt_status::success);
    EXPECT_EQ(where_.server->context().quotas.in_use(limit::locks), 1U);
}

TEST_F(quotas, an_open_created_at_the_lock_limit_can_lock_after_others_unlock) {
    compliant_client& greedy = log_on("greedy");
    server::client_quotas& all = where_.server->context().quotas;
    server::quota_hold most = all.take(all.user("greedy"), limit::locks, bound / 2);
    const server::quota_hold of_other = all.take(all.user("honest"), limit::locks, bound / 4);
    wire::file_id file{};
    ASSERT_EQ(open(greedy, "f", false, &file), nt_status::success);
    EXPECT_NE(lock(greedy, file, 0), nt_status::success);
    most.reset();
    EXPECT_EQ(lock(greedy, file, 0), nt_status::success);
}

TEST_F(quotas, requests_of_a_user_that_wait_are_rejected_while_those_of_others_can_wait) {
    compliant_client& greedy = log_on("greedy");
    compliant_client& honest = log_on("honest");
    wire::file_id of_greedy{};
    wire::file_id of_honest{};
    ASSERT_EQ(open(greedy, "d", true, &of_greedy), nt_status::success);
    ASSERT_EQ(open(honest, "d", true, &of_honest), nt_status::success);
    std::vector<std::uint64_t> waiting;
    for (std::size_t i = 0; i != bound / 2; ++i)
        waiting.push_back(watch(greedy, of_greedy));
    EXPECT_EQ(greedy.answer_to(watch(greedy, of_greedy)).status(), nt_status::insufficient_resources);
    const std::uint64_t of_other = watch(honest, of_honest);
    EXPECT_FALSE(honest.is_answered(of_other));
    EXPECT_EQ(where_.server->context().quotas.in_use(limit::pending_requests), bound / 2 + 1);
}

TEST_F(quotas, watches_of_a_user_are_rejected_while_others_can_watch) {
    compliant_client& greedy = log_on("greedy");
    compliant_client& honest = log_on("honest");
    std::vector<wire::file_id> directories(3);
    // A smaller bound than that for opens, because the watched directories count as opens.
    const server::client_reference by = where_.server->context().quotas.user("greedy");
    const server::quota_hold before = where_.server->context().quotas.take(by, limit::watches, bound / 2 - 1);
    for (wire::file_id& one : directories)
        ASSERT_EQ(open(greedy, "d", true, &one), nt_status::success);
    (void)watch(greedy, directories[0]);
    EXPECT_EQ(greedy.answer_to(watch(greedy, directories[1])).status(), nt_status::insufficient_resources);
    wire::file_id of_honest{};
    ASSERT_EQ(open(honest, "d", true, &of_honest), nt_status::success);
    EXPECT_FALSE(honest.is_answered(watch(honest, of_honest)));
}

TEST_F(quotas, queued_changes_beyond_the_memory_of_a_user_are_dropped_and_its_client_must_list) {
    compliant_client& greedy = log_on("greedy");
    wire::file_id directory{};
    ASSERT_EQ(open(greedy, "d", true, &directory), nt_status::success);
    const std::uint64_t first = watch(greedy, directory);
    greedy.cancel(greedy.async_id_of(first));
    EXPECT_EQ(greedy.answer_to(first).status(), nt_status::cancelled);
    // No change notification fits into this bound.
    ASSERT_EQ(open(greedy, "d\\new"), nt_status::success);
    EXPECT_EQ(greedy.answer_to(watch(greedy, directory)).status(), nt_status::notify_enum_dir);
    EXPECT_GT(rejections(limit::queued_change_bytes), 0U);
    EXPECT_EQ(where_.server->context().quotas.in_use(limit::queued_change_bytes), 0U);
}

TEST_F(quotas, queued_changes_count_for_a_watch_begun_at_the_memory_limit_of_its_user) {
    compliant_client& greedy = log_on("greedy");
    server::client_quotas& all = where_.server->context().quotas;
    const server::quota_hold most = all.take(all.user("greedy"), limit::queued_change_bytes, bound / 2);
    const server::quota_hold other = all.take(all.user("honest"), limit::queued_change_bytes, bound / 4);
    wire::file_id directory{};
    ASSERT_EQ(open(greedy, "d", true, &directory), nt_status::success);
    const std::uint64_t first = watch(greedy, directory);
    greedy.cancel(greedy.async_id_of(first));
    EXPECT_EQ(greedy.answer_to(first).status(), nt_status::cancelled);
    ASSERT_EQ(open(greedy, "d\\new"), nt_status::success);
    EXPECT_EQ(greedy.answer_to(watch(greedy, directory)).status(), nt_status::notify_enum_dir);
}

TEST_F(quotas, tree_connections_of_a_user_are_rejected_while_others_can_connect) {
    compliant_client& greedy = log_on("greedy");
    std::size_t connected = 1;
    while (greedy.connect_tree("files") == nt_status::success)
        ASSERT_LT(++connected, bound);
    EXPECT_EQ(connected, bound / 2);
    (void)log_on("honest");
}

TEST_F(quotas, durable_opens_beyond_the_share_of_a_user_end_with_their_connection) {
    compliant_client& greedy = log_on("greedy");
    auto how = compliant_client::for_everything();
    how.oplock_level = wire::oplock_level::batch;
    how.contexts.durable = true;
    const server::client_reference by = where_.server->context().quotas.user("greedy");
    const server::quota_hold before =
        where_.server->context().quotas.take(by, limit::kept_opens, bound / 2 - 1);
    for (int i = 0; i != 3; ++i)
        (void)greedy.create(std::to_string(i), how);
    greedy.close_connection();
    compliant_client& honest = log_on("honest");
    EXPECT_EQ(honest.call(command::echo, wire::echo_args{}).status(), nt_status::success);
    EXPECT_EQ(where_.server->gauges().opens, 1U) << "one is kept";
    EXPECT_EQ(rejections(limit::kept_opens), 2U);
}

TEST_F(quotas, the_connection_with_most_memory_of_the_user_with_most_is_closed_when_memory_runs_out) {
    compliant_client& honest = log_on("honest");
    for (int i = 0; i != 4; ++i)
        log_on("greedy").announce_frame(900'000);  // 1 MiB each, as reserved
    EXPECT_EQ(rejections(limit::buffer_bytes), 0U);
    for (int i = 0; i != 4; ++i) {
        EXPECT_EQ(honest.call(command::echo, wire::echo_args{}).status(), nt_status::success);
        where_.clock.advance(std::chrono::seconds(1));
    }
    EXPECT_EQ(rejections(limit::buffer_bytes), 1U) << "only as many as necessary";
    EXPECT_EQ(honest.call(command::echo, wire::echo_args{}).status(), nt_status::success);
}

TEST_F(quotas, guests_of_all_addresses_together_have_the_share_of_one_user) {
    std::size_t logged_on = 0;
    for (int i = 0; i != 20; ++i)
        if (connect("10.0.1." + std::to_string(i)).log_on("", "") == nt_status::success) ++logged_on;
    EXPECT_EQ(logged_on, bound / 2);
    (void)log_on("honest");
}

}  // namespace
}  // namespace sluice::smb_simulation
