// Lookups and connects by name: each form, over each multiplexer, with answers that the test
// provides.

#include "sluice/io/name/name_resolver.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "sluice/io/name/name_connect.hpp"
#include "sluice/io/sender/atomic_sender.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"

namespace sluice::io {
namespace {

using namespace std::chrono_literals;
using namespace test_kit;

/// Returns the scripted answers; while shut, a lookup waits.
class scripted final : public name_source {
public:
    std::map<std::string, std::vector<socket_address>> known;
    std::atomic<int> begun{0};
    std::atomic<bool> is_open{true};

    void open() {
        is_open = true;
        is_open.notify_all();
    }
    addresses_result look_up(const std::string& host, std::uint16_t) noexcept override {
        ++begun;
        begun.notify_all();
        is_open.wait(false);
        const auto found = known.find(host);
        if (found == known.end()) return failure(error::with_path(ENOENT, "look up", host));
        return found->second;
    }
};

std::vector<multiplexer_kind> all_multiplexers() {
    auto kinds = multiplexer_kinds();
    kinds.push_back({"simulated", []() -> result<std::unique_ptr<io_multiplexer>> {
                         auto made = make_simulated_multiplexer(simulation_options{.seed = 7});
                         if (not made) return failure(made.error());
                         return std::move(*made);
                     }});
    return kinds;
}

class name_test : public ::testing::TestWithParam<multiplexer_kind> {
protected:
    void SetUp() override {
        auto made = GetParam().make();
        if (not made) GTEST_SKIP() << "no " << GetParam().name << " here: " << made.error().message();
        multiplexer = std::move(*made);
        source->known["host"] = {socket_address::loopback_v4(7), socket_address::loopback_v6(7)};
    }
    void TearDown() override { source->open(); }
    /// Makes every lookup that has begun wait until the end of the test.
    void shut() { source->is_open = false; }
    template <class Condition>
    void run_until(Condition done) {
        while (not done())
            (void)multiplexer->try_run_for(10ms);
    }

    std::shared_ptr<scripted> source = std::make_shared<scripted>();
    std::unique_ptr<io_multiplexer> multiplexer;
};

// --- lookups

class name_resolver_test : public name_test {};
// Not over a simulation, which carries a lookup out in start().
class lookup_on_a_thread : public name_test {};

TEST_P(name_resolver_test, a_blocking_lookup_returns_all_addresses_in_order) {
    name_resolver resolver({.source = source});
    const auto without_limit = resolver.resolve({"host", 7});
    ASSERT_TRUE(without_limit.has_value());
    EXPECT_EQ(*without_limit, source->known["host"]);
    const auto within = resolver.resolve({"host", 7}, 1h);
    ASSERT_TRUE(within.has_value());
    EXPECT_EQ(*within, source->known["host"]);
}

TEST_P(name_resolver_test, a_sender_returns_all_addresses_in_order_and_can_be_started_again) {
    name_resolver resolver({.source = source});
    recorded lookup(async_resolve(*multiplexer, resolver, {"host", 7}));
    for (int round = 0; round < 2; ++round) {
        lookup.start();
        run_until([&] { return lookup.done(); });
        ASSERT_TRUE(lookup.value().has_value()) << lookup.value().error().message();
        EXPECT_EQ(*lookup.value(), source->known["host"]);
    }
}

task<addresses_result> resolved(io_multiplexer& loop, name_resolver& by, std::string host,
                                deadline within = {}) {
    const host_and_port what{std::move(host), 7};
    co_return co_await co_resolve(loop, by, what, within);
}

TEST_P(name_resolver_test, a_coroutine_gets_all_addresses_in_order) {
    name_resolver resolver({.source = source});
    const auto found = sync_wait(*multiplexer, resolved(*multiplexer, resolver, "host"));
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, source->known["host"]);
}

TEST_P(name_resolver_test, an_unknown_host_is_named) {
    name_resolver resolver({.source = source});
    const auto none = sync_wait(*multiplexer, resolved(*multiplexer, resolver, "nowhere"));
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error(), std::errc::no_such_file_or_directory);
    EXPECT_NE(none.error().message().find("nowhere"), std::string::npos);
}

TEST_P(name_resolver_test, an_invalid_name_is_refused_without_a_lookup) {
    name_resolver resolver({.source = source});
    source->known["host\0.evil"] = source->known["host"];
    for (const std::string& bad : {std::string(), std::string("host\0.evil", 10), std::string(5000, 'a')}) {
        const auto refused = sync_wait(*multiplexer, resolved(*multiplexer, resolver, bad));
        ASSERT_FALSE(refused.has_value());
        EXPECT_TRUE(refused.error() == std::errc::invalid_argument or
                    refused.error() == std::errc::filename_too_long);
        EXPECT_FALSE(resolver.resolve({bad, 7}).has_value());
    }
    EXPECT_EQ(sync_wait(*multiplexer, resolved(*multiplexer, resolver, "127.0.0.1")).value().front(),
              socket_address::loopback_v4(7));
    EXPECT_EQ(source->begun.load(), 0);
}

TEST_P(name_resolver_test, addresses_beyond_the_limit_are_dropped) {
    name_resolver resolver({.source = source});
    source->known["many"].assign(10'000, socket_address::loopback_v4(7));
    EXPECT_EQ(sync_wait(*multiplexer, resolved(*multiplexer, resolver, "many")).value().size(),
              limits::addresses_per_name_max);
}

TEST_P(name_resolver_test, a_name_without_addresses_is_not_found) {
    name_resolver resolver({.source = source});
    source->known["empty"] = {};
    EXPECT_EQ(sync_wait(*multiplexer, resolved(*multiplexer, resolver, "empty")).error(),
              std::errc::no_such_file_or_directory);
}

TEST_P(lookup_on_a_thread, cancelling_a_lookup_that_does_not_end_ends_the_operation) {
    name_resolver resolver({.source = source});
    shut();
    recorded lookup(async_resolve(*multiplexer, resolver, {"host", 7}));
    lookup.start();
    source->begun.wait(0);
    lookup.cancel();
    run_until([&] { return lookup.done(); });
    EXPECT_EQ(lookup.value().error(), std::errc::operation_canceled);
    EXPECT_EQ(multiplexer->pending(), 0U);
}

TEST_P(lookup_on_a_thread, a_lookup_that_does_not_end_ends_at_its_deadline) {
    name_resolver resolver({.source = source});
    shut();
    EXPECT_EQ(sync_wait(*multiplexer, resolved(*multiplexer, resolver, "host", 1ms)).error(),
              std::errc::timed_out);
    EXPECT_EQ(resolver.resolve({"host", 7}, 1ms).error(), std::errc::timed_out);
}

TEST_P(lookup_on_a_thread, the_loop_and_the_resolver_may_be_destroyed_before_an_abandoned_lookup_ends) {
    shut();
    {
        name_resolver resolver({.source = source});
        recorded lookup(async_resolve(*multiplexer, resolver, {"host", 7}));
        lookup.start();
        source->begun.wait(0);
        lookup.cancel();
        run_until([&] { return lookup.done(); });
    }
    multiplexer.reset();
    source->open();
}

TEST_P(lookup_on_a_thread, lookups_that_wait_for_a_thread_are_limited_and_leave_the_queue_when_cancelled) {
    name_resolver resolver({.threads_max = 1, .waiting_max = 2, .source = source});
    shut();
    using one = recorded<resolve_sender>;
    one running(async_resolve(*multiplexer, resolver, {"host", 7}));
    running.start();
    source->begun.wait(0);
    one first(async_resolve(*multiplexer, resolver, {"host", 7}));
    one second(async_resolve(*multiplexer, resolver, {"host", 7}));
    one beyond(async_resolve(*multiplexer, resolver, {"host", 7}));
    first.start();
    second.start();
    beyond.start();
    run_until([&] { return beyond.done(); });
    EXPECT_EQ(beyond.value().error(), std::errc::resource_unavailable_try_again);
    first.cancel();
    run_until([&] { return first.done(); });
    beyond.start();  // in its place
    source->open();
    run_until([&] { return beyond.done() and second.done() and running.done(); });
    EXPECT_TRUE(beyond.value().has_value());
    EXPECT_EQ(source->begun.load(), 3);
}

TEST_P(lookup_on_a_thread, an_address_and_an_invalid_name_do_not_wait_for_names_without_an_answer) {
    name_resolver resolver({.threads_max = 1, .waiting_max = 1, .source = source});
    shut();
    using one = recorded<resolve_sender>;
    one running(async_resolve(*multiplexer, resolver, {"host", 7}));
    running.start();
    source->begun.wait(0);
    one waiting(async_resolve(*multiplexer, resolver, {"host", 7}));
    waiting.start();
    one address(async_resolve(*multiplexer, resolver, {"127.0.0.1", 7}));
    one invalid(async_resolve(*multiplexer, resolver, {"", 7}));
    address.start();
    invalid.start();
    run_until([&] { return address.done() and invalid.done(); });
    EXPECT_TRUE(address.value().has_value());
    EXPECT_EQ(invalid.value().error(), std::errc::invalid_argument);
    running.cancel();
    waiting.cancel();
    run_until([&] { return running.done() and waiting.done(); });
}

TEST_P(name_resolver_test, the_end_of_a_lookup_races_with_cancelling_it_and_one_of_them_wins) {
    name_resolver resolver({.source = source});
    const io_multiplexer::work_guard guard(*multiplexer);
    (void)multiplexer->try_run();  // makes this thread its owner
    for (int round = 0; round < 500; ++round) {
        outcome<addresses_result> came;
        atomic_io_operation_connection<resolve_sender, recorder<addresses_result>> state(
            async_resolve(*multiplexer, resolver, {"host", 7}), {&came});
        state.start();
        std::thread canceller([&] { state.cancel(); });
        while (came.dones == 0)
            (void)multiplexer->try_run();
        canceller.join();
        while (multiplexer->try_run().value_or(0) > 0) {}
        ASSERT_EQ(came.dones, 1);
        ASSERT_TRUE(came.value->has_value() or came.value->error() == std::errc::operation_canceled);
    }
}

TEST_P(name_resolver_test, the_end_of_a_lookup_races_with_the_end_of_its_loop) {
    name_resolver resolver({.source = source});
    for (int round = 0; round < 200; ++round) {
        const auto loop = GetParam().make().value();
        recorded lookup(async_resolve(*loop, resolver, {"host", 7}));
        lookup.start();
        lookup.cancel();
        while (not lookup.done())
            (void)loop->try_run();
    }
}

TEST_P(name_resolver_test, the_system_knows_this_machine) {
    name_resolver resolver;
    const auto found = sync_wait(*multiplexer, resolved(*multiplexer, resolver, "localhost"));
    ASSERT_TRUE(found.has_value()) << found.error().message();
    EXPECT_EQ(found->front().port(), 7);
}

INSTANTIATE_TEST_SUITE_P(each, name_resolver_test, ::testing::ValuesIn(all_multiplexers()), kind_name);
INSTANTIATE_TEST_SUITE_P(each, lookup_on_a_thread, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

// --- connecting

class name_connect : public name_test {
protected:
    void SetUp() override {
        name_test::SetUp();
        listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
        // The first address has no listener, and refuses.
        taken = socket_handle::create(address_family::ip_v4).value();
        ASSERT_TRUE(taken.bind(socket_address::loopback_v4(0)).has_value());
        source->known["server"] = {taken.local_address().value(), listener.local_address().value()};
        source->known["dead"] = {taken.local_address().value()};
    }

    listening_socket_handle listener;
    socket_handle taken;
};

class connect_on_a_thread : public name_connect {};

TEST_P(name_connect, the_blocking_form_tries_all_addresses_in_order) {
    name_resolver resolver({.source = source});
    auto made = connect_by_name(resolver, {"server", 7}, {}, 1h);
    ASSERT_TRUE(made.has_value()) << made.error().message();
    EXPECT_EQ(made->peer_address().value(), listener.local_address().value());
    const auto none = connect_by_name(resolver, {"dead", 7});
    EXPECT_EQ(none.error(), std::errc::connection_refused);
    EXPECT_NE(none.error().message().find(taken.local_address().value().text()), std::string::npos);
    EXPECT_EQ(connect_by_name(resolver, {"nowhere", 7}).error(), std::errc::no_such_file_or_directory);
}

TEST_P(name_connect, a_coroutine_tries_all_addresses_in_order) {
    name_resolver resolver({.source = source});
    auto made = sync_wait(*multiplexer, co_connect_by_name(*multiplexer, resolver, {"server", 7}, {}, 1h));
    ASSERT_TRUE(made.has_value()) << made.error().message();
    EXPECT_EQ(made->multiplexer(), multiplexer.get());
    EXPECT_EQ(made->peer_address().value(), listener.local_address().value());
    const auto none = sync_wait(*multiplexer, co_connect_by_name(*multiplexer, resolver, {"dead", 7}));
    EXPECT_EQ(none.error(), std::errc::connection_refused);
}

TEST_P(name_connect, a_sender_tries_all_addresses_in_order_and_can_be_started_again) {
    name_resolver resolver({.source = source});
    outcome<result<socket_handle>> came;
    auto state = connect(async_connect_by_name(*multiplexer, resolver, {"server", 7}),
                         recorder<result<socket_handle>>{&came});
    for (int round = 1; round <= 2; ++round) {
        state.start();
        run_until([&] { return came.dones == round; });
        EXPECT_FALSE(state.started());
        ASSERT_TRUE(came.value->has_value()) << came.value->error().message();
        EXPECT_EQ((*came.value)->peer_address().value(), listener.local_address().value());
        came.value.reset();
    }
}

TEST_P(connect_on_a_thread, cancelling_during_the_lookup_connects_to_nothing) {
    name_resolver resolver({.source = source});
    shut();
    outcome<result<socket_handle>> came;
    auto state = connect(async_connect_by_name(*multiplexer, resolver, {"server", 7}),
                         recorder<result<socket_handle>>{&came});
    state.start();
    source->begun.wait(0);
    state.cancel();
    run_until([&] { return came.dones == 1; });
    EXPECT_EQ(came.value->error(), std::errc::operation_canceled);
}

/// Addresses that never answer: their queue of connections is full, and drops new ones.
struct silent_server {
    listening_socket_handle listener =
        listening_socket_handle::listen(socket_address::loopback_v4(0), {.backlog = 0}).value();
    std::vector<socket_handle> filling;

    silent_server() {
        for (int i = 0; i < 3; ++i) {
            auto one = socket_handle::create(address_family::ip_v4).value();
            (void)one.connect_to(address(), deadline::zero());
            filling.push_back(std::move(one));
        }
    }
    [[nodiscard]] socket_address address() const { return listener.local_address().value(); }
};

TEST_P(name_connect, cancelling_during_an_attempt_begins_no_other) {
    name_resolver resolver({.source = source});
    const silent_server silent;
    source->known["slow"] = {silent.address(), listener.local_address().value()};
    outcome<result<socket_handle>> came;
    auto state = connect(async_connect_by_name(*multiplexer, resolver, {"slow", 7}),
                         recorder<result<socket_handle>>{&came});
    state.start();
    while (source->begun.load() == 0 or multiplexer->pending() == 0 or
           multiplexer->try_run_for(1ms).value_or(0) > 0) {}
    EXPECT_EQ(came.dones, 0);
    state.cancel();
    run_until([&] { return came.dones == 1; });
    EXPECT_EQ(came.value->error(), std::errc::operation_canceled);
    EXPECT_EQ(listener.accept(deadline::zero()).error(), std::errc::timed_out);
}

TEST_P(name_connect, an_address_that_does_not_answer_leaves_time_for_the_next) {
    name_resolver resolver({.source = source});
    const silent_server silent;
    source->known["slow"] = {silent.address(), listener.local_address().value()};
    auto made = sync_wait(*multiplexer, co_connect_by_name(*multiplexer, resolver, {"slow", 7}, {}, 1s));
    ASSERT_TRUE(made.has_value()) << made.error().message();
    EXPECT_EQ(made->peer_address().value(), listener.local_address().value());
    auto blocking = connect_by_name(resolver, {"slow", 7}, {}, 1s);
    ASSERT_TRUE(blocking.has_value()) << blocking.error().message();
    source->known["silent"] = {silent.address()};
    EXPECT_EQ(
        sync_wait(*multiplexer, co_connect_by_name(*multiplexer, resolver, {"silent", 7}, {}, 5ms)).error(),
        std::errc::timed_out);
}

INSTANTIATE_TEST_SUITE_P(each, name_connect, ::testing::ValuesIn(all_multiplexers()), kind_name);
INSTANTIATE_TEST_SUITE_P(each, connect_on_a_thread, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io
