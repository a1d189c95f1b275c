// Processes that fork while operations are pending.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "sluice/io/asio/io_context_testing.hpp"
#include "sluice/io/loop/registered_buffer.hpp"

namespace sluice::io {
namespace {

namespace net = asio_names;
using net::ip::tcp;
using net::ip::udp;

class asio_forks : public test_kit::with_io_context {
protected:
    // Returns the exit status of a child that runs the function after notify_fork. -1: it died.
    pid_t fork_with(const std::function<int()>& in_child) {
        context->notify_fork(net::io_context::fork_prepare);
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(20);  // ends a test that hangs
            int status = 99;
            try {
                context->notify_fork(net::io_context::fork_child);
                status = in_child();
            } catch (const std::exception&) {
                status = 98;
            }
            ::_exit(status);
        }
        context->notify_fork(net::io_context::fork_parent);
        return child;
    }
    static int status_of(pid_t child) {
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    static tcp::endpoint any() { return {asio::ip::address_v4::loopback(), 0}; }
};
INSTANTIATE_TEST_SUITE_P(over, asio_forks, ::testing::ValuesIn(test_kit::io_context_kinds()),
                         test_kit::kind_name);

TEST_P(asio_forks, each_process_continues_the_reads_that_were_pending) {
    tcp::acceptor acceptor(*context, any());
    tcp::socket near(*context), far(*context);
    near.connect(acceptor.local_endpoint());
    acceptor.accept(far);
    std::array<char, 1> into{};
    int reads = 0;
    near.async_read_some(asio::buffer(into), [&](asio::error_code why, std::size_t) { reads += not why; });
    net::steady_timer timer(*context, std::chrono::milliseconds(1));
    bool has_timer_ended = false;
    timer.async_wait([&](asio::error_code) { has_timer_ended = true; });
    context->poll();
    const pid_t child = fork_with([&] {
        context->run();  // until the parent writes
        return reads == 1 and has_timer_ended and into[0] == 'c' ? 0 : 1;
    });
    // The child is alone on this side now: the parent has ended its own read.
    near.cancel();
    context->run();
    EXPECT_EQ(reads, 0);
    asio::write(far, asio::buffer("c", 1));
    EXPECT_EQ(status_of(child), 0);

    context->restart();
    near.async_read_some(asio::buffer(into), [&](asio::error_code why, std::size_t) { reads += not why; });
    asio::write(far, asio::buffer("p", 1));
    context->run();
    EXPECT_EQ(reads, 1);
    EXPECT_EQ(into[0], 'p');
}

// A server with a child process per connection, as in Asio's example.
class forking_server {
public:
    forking_server(asio_context& context, int connections,
                   std::function<pid_t(const std::function<int()>&)> fork)
        : acceptor_(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
          fork_(std::move(fork)),
          left_(connections) {
        accept();
    }
    [[nodiscard]] tcp::endpoint where() const { return acceptor_.local_endpoint(); }

    std::vector<pid_t> children;

private:
    void accept() {
        acceptor_.async_accept([this](asio::error_code why, tcp::socket socket) {
            if (why) return;
            children.push_back(fork_([this, &socket] {
                acceptor_.close();
                // With blocking calls, because the handler is inside run(), which cannot be called
                // again.
                std::array<char, 16> line{};
                const std::size_t count = socket.read_some(asio::buffer(line));
                asio::write(socket, asio::buffer(line, count));
                return 0;
            }));
            if (--left_ > 0) accept();
        });
    }

    tcp::acceptor acceptor_;
    std::function<pid_t(const std::function<int()>&)> fork_;
    int left_;
};

TEST_P(asio_forks, a_handler_may_fork_a_process_for_each_connection) {
    constexpr int connections = 3;
    forking_server server(*context, connections,
                          [this](const std::function<int()>& serve) { return fork_with(serve); });
    for (int i = 0; i < connections; ++i) {
        context->poll();  // the accept waits in the kernel when the next client comes
        tcp::socket client(*context);
        client.connect(server.where());
        while (server.children.size() <= static_cast<std::size_t>(i))
            context->run_one();
        std::array<char, 4> back{};
        asio::write(client, asio::buffer("ping", 4));
        EXPECT_EQ(asio::read(client, asio::buffer(back)), 4U);
        EXPECT_EQ(status_of(server.children.back()), 0);  // it has closed the acceptor
    }
    context->run();
}

// The child continues inside the handler and the run() that forked, so it leaves by its own exit.
TEST_P(asio_forks, the_loop_that_forked_continues_in_the_child) {
    tcp::acceptor acceptor(*context, any());
    tcp::socket client(*context);
    client.connect(acceptor.local_endpoint());
    const pid_t parent = ::getpid();
    pid_t child = 0;
    std::array<char, 16> line{};
    std::optional<tcp::socket> served;
    acceptor.async_accept([&](asio::error_code, tcp::socket socket) {
        context->notify_fork(net::io_context::fork_prepare);
        child = ::fork();
        context->notify_fork(child == 0 ? net::io_context::fork_child : net::io_context::fork_parent);
        if (child != 0) return;
        ::alarm(20);
        served.emplace(std::move(socket));
        acceptor.close();
        asio::async_read(*served, asio::buffer(line, 4), [&](asio::error_code, std::size_t) {
            asio::async_write(*served, asio::buffer(line, 4), [](asio::error_code, std::size_t) {});
        });
        // While the read waits.
        net::post(*context, [&] { asio::write(*served, asio::buffer("?", 1)); });
    });
    context->run();
    if (::getpid() != parent) ::_exit(0);
    std::array<char, 4> back{};
    EXPECT_EQ(asio::read(client, asio::buffer(back, 1)), 1U);
    asio::write(client, asio::buffer("ping", 4));
    EXPECT_EQ(asio::read(client, asio::buffer(back)), 4U);
    EXPECT_EQ(status_of(child), 0);
    // The parent still has the acceptor that the child closed.
    bool is_accepted = false;
    context->restart();
    acceptor.async_accept([&](asio::error_code why, const tcp::socket&) { is_accepted = not why; });
    context->poll();
    tcp::socket second(*context);
    second.connect(acceptor.local_endpoint());
    context->run();
    EXPECT_TRUE(is_accepted);
}

TEST_P(asio_forks, each_process_gets_its_own_signals) {
    net::signal_set signals(*context, SIGUSR1);
    int got = 0;
    signals.async_wait([&](asio::error_code why, int number) { got = why ? 0 : number; });
    context->poll();
    const pid_t child = fork_with([&] {
        context->run();
        return got == SIGUSR1 ? 0 : 1;
    });
    ASSERT_EQ(::kill(child, SIGUSR1), 0);
    EXPECT_EQ(status_of(child), 0);
    context->poll();
    EXPECT_EQ(got, 0);
    ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
    context->run();
    EXPECT_EQ(got, SIGUSR1);
}

TEST_P(asio_forks, a_set_made_before_the_context_has_run_gets_the_signals_of_the_child) {
    net::signal_set signals(*context, SIGUSR1);
    int got = 0;
    signals.async_wait([&](asio::error_code why, int number) { got = why ? 0 : number; });
    const pid_t child = fork_with([&] {
        context->poll();
        if (::kill(::getpid(), SIGUSR1) != 0) return 2;
        context->run();
        return got == SIGUSR1 ? 0 : 1;
    });
    EXPECT_EQ(status_of(child), 0);
}

TEST_P(asio_forks, a_child_makes_signal_sets_whatever_other_threads_did) {
    net::signal_set kept(*context, SIGUSR2);  // makes the other thread block it
    std::atomic<bool> is_over = false;
    std::thread other([&] {
        net::io_context own(1);
        while (not is_over.load()) {
            net::signal_set(own, SIGUSR2);
            own.poll();
            own.restart();
        }
    });
    int usable = 0;
    constexpr int forks = 60;
    for (; usable < forks; ++usable) {
        const pid_t child = fork_with([&] {
            net::signal_set(*context, SIGUSR2);
            return 0;
        });
        if (status_of(child) != 0) break;
    }
    EXPECT_EQ(usable, forks);
    is_over = true;
    other.join();
}

TEST_P(asio_forks, a_state_that_a_child_cannot_have_is_refused_before_the_fork) {
    auto pinned = multiplexer->allocate_registered_buffer(4096);
    ASSERT_TRUE(pinned.has_value());
    const auto prepare = [this] { context->notify_fork(net::io_context::fork_prepare); };
    if (multiplexer->name() == "io_uring") {
        EXPECT_THROW(prepare(), asio::system_error);
    } else {
        prepare();  // the kernel does not know of the buffer
    }
}

TEST_P(asio_forks, a_child_looks_up_names) {
    net::ip::tcp::resolver resolver(*context);
    int found = 0;
    const auto count = [&](asio::error_code why, const tcp::resolver::results_type& results) {
        found += not why and not results.empty();
    };
    resolver.async_resolve("localhost", "80", count);
    EXPECT_THROW(context->notify_fork(net::io_context::fork_prepare), asio::system_error);
    context->run();
    EXPECT_EQ(found, 1);
    context->restart();
    const pid_t child = fork_with([&] {
        resolver.async_resolve("localhost", "80", count);
        context->run();
        return found == 2 ? 0 : 1;
    });
    EXPECT_EQ(status_of(child), 0);
}

TEST_P(asio_forks, a_context_that_has_not_run_may_be_forked_and_used) {
    udp::socket one(*context, udp::endpoint(asio::ip::address_v4::loopback(), 0));
    std::array<char, 4> into{};
    std::size_t got = 0;
    one.async_receive(asio::buffer(into), [&](asio::error_code, std::size_t count) { got = count; });
    const pid_t child = fork_with([&] {
        udp::socket other(*context, udp::v4());
        other.send_to(asio::buffer("abcd", 4), one.local_endpoint());
        context->run();
        return got == 4 ? 0 : 1;
    });
    EXPECT_EQ(status_of(child), 0);
}

}  // namespace
}  // namespace sluice::io
