#include "sluice/io/stream/co_receive.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <functional>

#include "sluice/io/loop/failure_handler.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/task/task.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/io/task/when_all.hpp"
#include "sluice/io/task/with_deadline.hpp"

namespace sluice::io {
namespace {

using namespace test_kit;
using namespace std::chrono_literals;

class co_receive_test : public with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (not IsSkipped()) pair = attached();
    }
    void TearDown() override {
        pair = {};
        pool.reset();
    }
    connection attached() {
        auto made = connect_streams(stream_kinds().front());
        EXPECT_TRUE(made.server.set_multiplexer(multiplexer.get()).has_value());
        EXPECT_TRUE(made.client.set_multiplexer(multiplexer.get()).has_value());
        return made;
    }
    receive_pool& make_pool(std::uint32_t count, std::size_t bytes_each) {
        return pool.emplace(
            receive_pool::make(*multiplexer, {.count = count, .bytes_each = bytes_each}).value());
    }
    void say(std::string_view s) {
        ASSERT_EQ(pair.client.write({.buffers = text(s)}).bytes_transferred(), s.size());
    }
    template <class T>
    T run(task<T> root) {
        return sync_wait(*multiplexer, std::move(root));
    }

    std::optional<receive_pool> pool;
    connection pair;
};

// The bytes received until the end of file, and the error that ended the stream.
struct heard {
    std::string text;
    int code = 0;
};

task<heard> hear(socket_handle& from, receive_pool& pool) {
    heard all;
    for (;;) {
        const auto piece = co_await co_receive(from, pool);
        if (not piece) all.code = piece.error().code();
        if (not piece or piece->empty()) co_return all;
        all.text += string_of(piece->bytes());
    }
}

TEST_P(co_receive_test, returns_the_bytes_in_order_and_an_empty_buffer_at_the_end) {
    make_pool(2, 4);
    say("aaaabbbbcc");
    ASSERT_TRUE(pair.client.shutdown(direction::out).has_value());
    const heard all = run(hear(pair.server, *pool));
    EXPECT_EQ(all.text, "aaaabbbbcc");
    EXPECT_EQ(all.code, 0);
    EXPECT_EQ(pool->in_use(), 0U);
}

task<std::string> one_piece(socket_handle& from, receive_pool& pool) {
    const auto piece = co_await co_receive(from, pool);
    co_return piece ? string_of(piece->bytes()) : piece.error().message();
}

TEST_P(co_receive_test, receives_only_on_request) {
    make_pool(4, 4);
    say("aaaabbbb");
    EXPECT_EQ(run(one_piece(pair.server, *pool)), "aaaa");
    (void)multiplexer->try_run_for(20ms);
    EXPECT_EQ(pool->in_use(), 0U);
    std::array<std::byte, 8> memory{};
    EXPECT_EQ(string_of(pair.server.read(io_request<bytes_type>{memory}).value()), "bbbb");
}

TEST_P(co_receive_test, bytes_that_arrive_after_a_time_limit_go_to_the_next) {
    make_pool(1, 16);
    const auto timed = [&] { return with_deadline(*multiplexer, one_piece(pair.server, *pool), 20ms); };
    EXPECT_EQ(run(timed()).error(), std::errc::timed_out);
    EXPECT_EQ(multiplexer->pending(), 0U);
    say("later");
    EXPECT_EQ(run(timed()).value(), "later");
}

TEST_P(co_receive_test, in_a_cancelled_scope_it_receives_nothing) {
    make_pool(1, 16);
    say("kept");
    cancel_scope scope;
    scope.cancel();
    const std::string refused = run(in_scope(scope, one_piece(pair.server, *pool)));
    EXPECT_NE(refused, "kept");
    EXPECT_TRUE(scope.has_cut_short());
    EXPECT_EQ(run(one_piece(pair.server, *pool)), "kept");
}

task<void> hold(receive_pool& pool, socket_handle& from, std::optional<received_buffer>& into) {
    auto piece = co_await co_receive(from, pool);
    if (piece) into = std::move(*piece);
}

TEST_P(co_receive_test, without_a_free_buffer_it_waits_for_one_or_for_its_time_limit) {
    make_pool(1, 4);
    say("aaaabbbb");
    std::optional<received_buffer> held;
    run(hold(*pool, pair.server, held));
    ASSERT_TRUE(held.has_value());
    const auto timed = [&] { return with_deadline(*multiplexer, one_piece(pair.server, *pool), 20ms); };
    EXPECT_EQ(run(timed()).error(), std::errc::timed_out);
    struct giver final : posted_item {
        std::optional<received_buffer>* held = nullptr;
        void invoke() noexcept override { held->reset(); }
    } later;
    later.held = &held;
    multiplexer->post(later);
    EXPECT_EQ(run(timed()).value(), "bbbb");
    EXPECT_EQ(pool->in_use(), 0U);
}

TEST_P(co_receive_test, a_reset_connection_is_an_error) {
    make_pool(1, 4);
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ASSERT_EQ(::setsockopt(pair.client.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    ASSERT_TRUE(pair.client.close().has_value());
    EXPECT_EQ(run(hear(pair.server, *pool)).code, ECONNRESET);
}

task<bool> echo(socket_handle& with, receive_pool& pool) {
    for (;;) {
        const auto piece = co_await co_receive(with, pool);
        if (not piece or piece->empty()) break;
        const io_request<const_bytes_type> back{.buffers = piece->bytes()};
        const auto put = co_await co_write(with, back);
        if (not put) break;
    }
    co_return with.shutdown(direction::out).has_value();
}

task<bool> talk(socket_handle& to, const std::vector<std::byte>& all) {
    const io_request<const_bytes_type> request{.buffers = all};
    const auto put = co_await co_write(to, request);
    EXPECT_EQ(put.bytes_transferred(), all.size());
    co_return to.shutdown(direction::out).has_value();
}

using heard_and_done = std::pair<std::vector<heard>, std::vector<bool>>;

task<heard_and_done> all_of(std::vector<task<heard>> listeners, std::vector<task<bool>> others) {
    auto [come, gone] = co_await when_all(when_all(std::move(listeners)), when_all(std::move(others)));
    co_return heard_and_done{std::move(come), {gone.begin(), gone.end()}};
}

TEST_P(co_receive_test, many_coroutines_share_few_buffers_and_every_byte_is_echoed) {
    make_pool(3, 700);
    const auto all = pattern(100'000);
    std::vector<connection> connections;
    for (int i = 0; i < 20; ++i)
        connections.push_back(attached());
    std::vector<task<heard>> listeners;
    std::vector<task<bool>> others;
    auto replies = receive_pool::make(*multiplexer, {.count = 2, .bytes_each = 999}).value();
    for (auto& each : connections) {
        others.push_back(echo(each.server, *pool));
        others.push_back(talk(each.client, all));
        listeners.push_back(hear(each.client, replies));
    }
    const auto [come, gone] = run(all_of(std::move(listeners), std::move(others)));
    EXPECT_TRUE(std::ranges::all_of(gone, std::identity{}));
    for (const heard& each : come)
        EXPECT_TRUE(each.text == string_of(all)) << each.text.size();
    EXPECT_EQ(pool->in_use() + replies.in_use(), 0U);
    connections.clear();
}

// --- receives that end early

int reports = 0;
class counting_reports {
public:
    counting_reports() {
        reports = 0;
        before_ = set_failure_handler([](unreturned_failure, const char*) noexcept { ++reports; });
    }
    counting_reports(const counting_reports&) = delete;
    counting_reports& operator=(const counting_reports&) = delete;
    ~counting_reports() { (void)set_failure_handler(before_); }

private:
    failure_handler before_ = nullptr;
};

TEST_P(co_receive_test, a_frame_that_is_destroyed_leaves_nothing_pending_and_no_buffer_in_use) {
    const counting_reports counted;
    auto& buffers = make_pool(2, 64);
    const auto waits = [&]() -> task<void> { (void)co_await co_receive(pair.server, buffers); };
    for (const bool has_come : {false, true}) {
        if (has_come) say("some bytes");
        const auto waiting = waits();
        waiting.frame().resume();
        if (not has_come) (void)multiplexer->try_run();
    }
    EXPECT_EQ(reports, 2);
    EXPECT_EQ(multiplexer->pending(), 0U);
    EXPECT_EQ(buffers.in_use(), 0U);
}

TEST_P(co_receive_test, a_frame_that_waits_for_a_buffer_may_be_destroyed) {
    const counting_reports counted;
    auto& buffers = make_pool(1, 4);
    const auto take = [&]() -> task<result<received_buffer>> {
        co_return co_await co_receive(pair.server, buffers);
    };
    say("12345678");
    {
        const auto kept = run(take());
        ASSERT_TRUE(kept.has_value());
        const auto waiting = take();
        waiting.frame().resume();
        while (multiplexer->try_run().value_or(0) > 0) {}
    }
    EXPECT_EQ(reports, 1);
    EXPECT_EQ(multiplexer->pending(), 0U);
    EXPECT_EQ(buffers.in_use(), 0U);
}

TEST_P(co_receive_test, a_stream_that_is_destroyed_leaves_nothing_pending) {
    const counting_reports counted;
    auto& buffers = make_pool(2, 64);
    struct keeping {
        void set_value(result<received_buffer>&&) noexcept {}
        void set_done() noexcept {}
    };
    {
        receive_stream stream(pair.server, buffers, keeping{});
        stream.start();
        (void)multiplexer->try_run();
        say("some bytes");
    }
    EXPECT_EQ(reports, 1);
    EXPECT_EQ(multiplexer->pending(), 0U);
    EXPECT_EQ(buffers.in_use(), 0U);
}

// Like a kernel without memory for another handle.
class attaches_nothing final : public io_multiplexer {
public:
    ~attaches_nothing() override { let_finish(); }
    [[nodiscard]] std::string_view name() const noexcept override { return "attaches nothing"; }

private:
    result<void> backend_attach(registration&) noexcept override { return failure({ENOSPC, "attach"}); }
    void backend_detach(registration&) noexcept override {}
    void backend_submit(detail::operation_record&) noexcept override {}
    void backend_cancel(detail::operation_record&) noexcept override {}
    result<void> backend_complete(time_point) noexcept override { return {}; }
    void backend_wake() noexcept override {}
};

TEST(receive_stream, whose_socket_cannot_be_attached_ends_with_the_error) {
    attaches_nothing none;
    auto pool = receive_pool::make(none, {.count = 1, .bytes_each = 64}).value();
    struct keeping {
        int* code;
        int* dones;
        void set_value(result<received_buffer>&& got) noexcept { *code = got ? 0 : got.error().code(); }
        void set_done() noexcept { ++*dones; }
    };
    auto ends = connect_streams(stream_kinds().front());
    int code = 0;
    int dones = 0;
    receive_stream stream(ends.server, pool, keeping{&code, &dones});
    stream.start();
    while (dones == 0)
        ASSERT_TRUE(none.run().has_value());
    EXPECT_EQ(code, ENOSPC);
    EXPECT_EQ(none.pending(), 0U);
}

INSTANTIATE_TEST_SUITE_P(over, co_receive_test, ::testing::ValuesIn(multiplexer_kinds()), kind_name);

}  // namespace
}  // namespace sluice::io
