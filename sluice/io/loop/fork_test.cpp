// Processes that fork while operations are pending, or while other threads use the library.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sluice/io/file/file_handle.hpp"
#include "sluice/io/loop/refused_handles.hpp"
#include "sluice/io/name/name_resolver.hpp"
#include "sluice/io/stream/accept_stream.hpp"
#include "sluice/io/stream/receive_stream.hpp"
#include "sluice/io/stream/signal_receiver.hpp"
#include "sluice/io/stream/socket_testing.hpp"
#include "sluice/io/task/cancel_scope.hpp"
#include "sluice/io/uring/uring_testing.hpp"

namespace sluice::io {
namespace {

using namespace test_kit;
using namespace std::chrono_literals;
using step = io_multiplexer::fork_step;

// Forks a child that exits with the result of the function.
pid_t fork_child(const std::function<int()>& in_child) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);  // ends a child that waits for a lock
        ::_exit(in_child());
    }
    return child;
}

int status_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// --- locks of the process

// Forks repeatedly while another thread repeatedly takes a lock that the child then needs.
void expect_usable_in_children(const std::function<void()>& use, const std::function<void()>& use_in_parent) {
    std::atomic<bool> is_over = false;
    std::jthread other([&] {
        while (not is_over.load())
            use_in_parent();
    });
    int usable = 0;
    constexpr int forks = 400;
    for (int i = 0; i < forks; ++i) {
        const int status = status_of(fork_child([&] {
            use();
            return 0;
        }));
        if (status != 0) break;
        ++usable;
    }
    EXPECT_EQ(usable, forks);
    is_over = true;
}

TEST(process_locks, operations_are_refused_in_a_forked_child) {
    const auto refuse = [] { (void)transfer_sender<bytes_type>(); };
    expect_usable_in_children(refuse, refuse);
}

TEST(process_locks, scopes_are_cancelled_in_a_forked_child) {
    const auto cancel = [] {
        cancel_scope outer;
        cancel_scope inner;
        inner.nest_in(outer);
        outer.cancel();
    };
    expect_usable_in_children(cancel, cancel);
}

TEST(process_locks, signals_are_received_in_a_forked_child) {
    const blocked_signals blocked{signal_set{SIGUSR1}};
    const auto source = signal_source::create(signal_set{SIGUSR1}).value();
    auto shared = signal_receiver::create(source).value();
    const auto receive = [](signal_receiver& by) { (void)by.wait(deadline::zero()); };
    expect_usable_in_children(
        [&] {
            auto own = signal_receiver::create(source).value();
            receive(own);
        },
        [&] { receive(shared); });
}

// --- what is pending

class forks : public with_multiplexer {
protected:
    [[nodiscard]] result<void> notify(step which) const { return multiplexer->notify_fork(which); }
    void expect_refused() const {
        const auto prepared = notify(step::prepare);
        ASSERT_FALSE(prepared.has_value());
        EXPECT_EQ(prepared.error(), std::errc::device_or_resource_busy);
    }
    [[nodiscard]] bool is_uring() const { return multiplexer->name() == "io_uring"; }

    // Status 99: one of the steps failed.
    pid_t fork_with(const std::function<int()>& in_child) const {
        if (not notify(step::prepare)) return fork_child([] { return 99; });
        const pid_t child = fork_child([&] { return notify(step::child) ? in_child() : 99; });
        EXPECT_TRUE(notify(step::parent).has_value());
        return child;
    }
    // The stream continues in a child, unless the fork is refused; then it continues in the parent.
    void expect_continued(const std::function<bool()>& gets_one, bool is_refused) const {
        if (is_refused)
            expect_refused();
        else
            EXPECT_EQ(status_of(fork_with([&] { return gets_one() ? 0 : 1; })), 0);
        EXPECT_TRUE(gets_one());
    }
};

std::vector<multiplexer_kind> kinds_for_forks() {
    auto kinds = multiplexer_kinds();
    kinds.push_back({"epoll_for_threads", [] { return make_epoll_multiplexer(1, run_by::several); }});
    kinds.push_back(
        {"io_uring_for_threads", [] { return make_uring_multiplexer({.threads = run_by::several}); }});
    return kinds;
}
INSTANTIATE_TEST_SUITE_P(over, forks, ::testing::ValuesIn(kinds_for_forks()), kind_name);

TEST_P(forks, are_refused_while_a_file_is_read_and_work_in_both_processes_afterwards) {
    auto file = uring_test::scratch_file();
    ASSERT_TRUE(file.write({.buffers = text("content"), .offset = 0}).has_value());
    ASSERT_TRUE(file.set_multiplexer(multiplexer.get()).has_value());
    std::array<std::byte, 7> into{};
    recorded read(async_read(file, io_request<bytes_type>{into, 0}));
    read.start(initiation::batched);
    expect_refused();
    ASSERT_TRUE(run_until([&] { return read.done(); }));
    EXPECT_EQ(string_of(into), "content");
    const auto reads_again = [&] {
        into = {};
        read.start(initiation::batched);
        return run_until([&] { return read.done(); }) and string_of(into) == "content";
    };
    EXPECT_EQ(status_of(fork_with([&] { return reads_again() ? 0 : 1; })), 0);
    EXPECT_TRUE(reads_again());
}

// Counts the values of a stream.
template <class Value>
struct counter {
    struct counts {
        int values = 0;
        int errors = 0;
        int dones = 0;
    };
    counts* of;
    void set_value(result<Value>&& came) const noexcept { ++(came ? of->values : of->errors); }
    void set_done() const noexcept { ++of->dones; }
};

TEST_P(forks, continue_a_receive_stream_unless_the_kernel_has_its_buffers) {
    auto pair = connect_streams(stream_kinds().front());
    ASSERT_TRUE(pair.server.set_multiplexer(multiplexer.get()).has_value());
    auto made = receive_pool::make(*multiplexer, {.count = 4, .bytes_each = 64});
    if (multiplexer->is_for_threads()) {
        EXPECT_FALSE(made.has_value());
        return;
    }
    std::optional<receive_pool> pool(std::move(*made));
    counter<received_buffer>::counts came;
    std::optional<receive_stream<counter<received_buffer>>> stream;
    stream.emplace(pair.server, *pool, counter<received_buffer>{&came});
    stream->start();
    (void)multiplexer->try_run();
    const auto gets_one = [&] {
        if (not pair.client.write(io_request<const_bytes_type>{text("one")}).has_value()) return false;
        return run_until([&] { return came.values == 1; });
    };
    expect_continued(gets_one, is_uring());
    stream->cancel();
    ASSERT_TRUE(run_until([&] { return came.dones == 1; }));
    stream.reset();
    if (is_uring()) expect_refused();  // the pool suffices for a refusal
    pool.reset();
    EXPECT_EQ(status_of(fork_with([] { return 0; })), 0);
}

TEST_P(forks, continue_an_accept_stream_unless_the_kernel_accepts_ahead) {
    auto listener = listening_socket_handle::listen(socket_address::loopback_v4(0)).value();
    ASSERT_TRUE(listener.set_multiplexer(multiplexer.get()).has_value());
    const auto at = listener.local_address().value();
    counter<accepted>::counts came;
    std::optional<accept_stream<counter<accepted>>> stream;
    stream.emplace(listener, counter<accepted>{&came});
    stream->start();
    (void)multiplexer->try_run();
    const auto gets_one = [&] {
        const auto client = socket_handle::connect(at);
        return client.has_value() and run_until([&] { return came.values == 1; });
    };
    expect_continued(gets_one, is_uring() and not multiplexer->is_for_threads());
    stream->cancel();
    ASSERT_TRUE(run_until([&] { return came.dones == 1; }));
    stream.reset();
    EXPECT_EQ(status_of(fork_with([&] {
                  came = {};
                  accept_stream again(listener, counter<accepted>{&came});
                  again.start();
                  const bool is_served = gets_one();
                  again.cancel();
                  return is_served and run_until([&] { return came.dones == 1; }) ? 0 : 1;
              })),
              0);
}

// Answers when the test allows it.
class hesitating final : public name_source {
public:
    std::atomic<bool> is_asked = false;
    std::atomic<bool> may_answer = false;

    addresses_result look_up(const std::string&, std::uint16_t) noexcept override {
        is_asked = true;
        may_answer.wait(false);
        return std::vector{socket_address::loopback_v4(7)};
    }
};

TEST_P(forks, leave_a_lookup_that_is_in_progress_to_the_parent) {
    const auto source = std::make_shared<hesitating>();
    name_resolver resolver({.source = source});
    recorded lookup(async_resolve(*multiplexer, resolver, {"host", 7}));
    lookup.start();
    while (not source->is_asked.load())
        std::this_thread::yield();
    const pid_t child = fork_with([&] {
        source->may_answer = true;  // only the parent's thread could see it
        const auto ran = multiplexer->try_run_for(20ms);
        return ran == io_multiplexer::nothing_ready and multiplexer->pending() == 1 ? 0 : 1;
    });
    EXPECT_EQ(status_of(child), 0);
    EXPECT_FALSE(lookup.done());
    source->may_answer = true;
    source->may_answer.notify_all();
    ASSERT_TRUE(run_until([&] { return lookup.done(); }));
    EXPECT_TRUE(lookup.value().has_value());
}

}  // namespace
}  // namespace sluice::io
