#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>

#include "sluice/io/stream/accept_stream.hpp"
#include "sluice/io/stream/socket_sender.hpp"
#include "tests/conformance/with_listener.hpp"

// accept_stream: returns every connection once, independent of their timing and of cancellations.

namespace sluice::io::conformance {
namespace {

std::size_t open_descriptors() {
    DIR* const all = ::opendir("/proc/self/fd");
    std::size_t count = 0;
    while (::readdir(all) != nullptr)
        ++count;
    ::closedir(all);
    return count;
}

// Returns the number of the client at the other end, which it has sent.
int number_of(accepted& from) {
    int number = -1;
    (void)from.socket.read(io_request<bytes_type>{std::as_writable_bytes(std::span(&number, 1))});
    return number;
}

// The results of a stream.
struct connections {
    std::vector<int> numbers;
    int code = 0;
    int dones = 0;
    bool has_peers = true;
    std::function<void()> on_value = [] {};
};

struct collector {
    connections* into;
    void set_value(result<accepted>&& outcome) noexcept {
        EXPECT_EQ(into->code, 0) << "a value after the error that ends it";
        if (outcome) {
            into->numbers.push_back(number_of(*outcome));
            into->has_peers = into->has_peers and outcome->peer == outcome->socket.peer_address().value();
        } else {
            into->code = outcome.error().code();
        }
        into->on_value();
    }
    void set_done() noexcept { ++into->dones; }
};

class accept_streams : public with_listener {
protected:
    void connect_clients(int count) {
        for (int i = 0; i < count; ++i) {
            const int number = static_cast<int>(clients.size());
            clients.push_back(socket_handle::connect(address).value());
            (void)clients.back().write(io_request<const_bytes_type>{std::as_bytes(std::span(&number, 1))});
        }
    }
    void connect_and_wait(int count, const connections& came) {
        connect_clients(count);
        ASSERT_TRUE(run_until([&] { return came.numbers.size() == clients.size(); }));
    }
    /// Accepts the connections that the stream has left in the listener's queue.
    void take_the_others(std::vector<int>& into) {
        while (auto other = listener.try_accept())
            into.push_back(number_of(*other));
    }
    /// Returns whether all connections were accepted, each once.
    testing::AssertionResult is_complete(std::vector<int> numbers) const {
        std::ranges::sort(numbers);
        for (std::size_t i = 0; i < std::max(numbers.size(), clients.size()); ++i) {
            if (i < numbers.size() and i < clients.size() and numbers[i] == static_cast<int>(i)) continue;
            return testing::AssertionFailure() << "of " << clients.size() << ", number " << i << " is wrong";
        }
        return testing::AssertionSuccess();
    }

    std::deque<socket_handle> clients;
};
INSTANTIATE_TEST_SUITE_P(conformance, accept_streams,
                         testing::Combine(testing::ValuesIn(back_ends()),
                                          testing::Values(family::ip, family::local)),
                         name_of_setting);

TEST_P(accept_streams, return_each_connection_once_and_in_order_one_by_one_and_in_bursts) {
    connections came;
    accept_stream stream(listener, collector{&came});
    connect_clients(3);
    stream.start();
    ASSERT_TRUE(run_until([&] { return came.numbers.size() == 3; }));
    for (const int burst : {1, 1, 1, 2, 1, 50, 1, 1, 3, 1, 200, 1, 1}) {
        run_briefly();
        connect_and_wait(burst, came);
    }
    EXPECT_TRUE(std::ranges::is_sorted(came.numbers));
    EXPECT_TRUE(is_complete(came.numbers));
    EXPECT_TRUE(came.has_peers);
    stream.cancel();
    ASSERT_TRUE(run_until([&] { return came.dones == 1; }));
    EXPECT_EQ(came.code, ECANCELED);
}

TEST_P(accept_streams, neither_lose_nor_leak_a_connection_if_cancelled_in_a_race) {
    const std::size_t before = open_descriptors();
    connections came;
    accept_stream stream(listener, collector{&came});
    std::vector<int> others;
    std::uint32_t random = 1;
    for (int round = 0; round < rounds(300); ++round) {
        came.code = 0;
        came.dones = 0;
        stream.start();
        const auto next = [&random](std::uint32_t below) {
            random = random * 1664525 + 1013904223;
            return static_cast<int>((random >> 16) % below);
        };
        if (next(2) == 0) run_briefly();
        for (int steps = next(4); steps > 0; --steps) {
            connect_clients(next(4));
            for (int passes = next(4); passes > 0; --passes)
                (void)multiplexer().complete_io(next(2) == 0 ? 1 : io_multiplexer::unlimited);
        }
        stream.cancel();
        if (next(2) == 0) connect_clients(1);
        ASSERT_TRUE(run_until([&] { return came.dones == 1; }));
        ASSERT_EQ(came.code, ECANCELED);
        take_the_others(others);
        std::vector<int> all = came.numbers;
        all.insert(all.end(), others.begin(), others.end());
        ASSERT_TRUE(is_complete(all)) << "in round " << round;
    }
    EXPECT_EQ(multiplexer().pending(), 0U);
    clients.clear();
    EXPECT_EQ(open_descriptors(), before);
}

TEST_P(accept_streams, return_accepted_connections_and_leave_the_rest_if_cancelled_by_their_receiver) {
    const std::size_t before = open_descriptors();
    for (const int burst : {1, 2, 5, 100}) {
        connections came;
        accept_stream stream(listener, collector{&came});
        came.on_value = [&] { stream.cancel(); };
        stream.start();
        run_briefly();
        clients.clear();
        connect_clients(burst);
        ASSERT_TRUE(run_until([&] { return came.dones == 1; }));
        EXPECT_EQ(came.code, ECANCELED);
        EXPECT_GE(came.numbers.size(), 1U);
        take_the_others(came.numbers);
        EXPECT_TRUE(is_complete(came.numbers));
    }
    clients.clear();
    EXPECT_EQ(open_descriptors(), before);
}

TEST_P(accept_streams, share_their_listener_with_single_accepts) {
    for (const bool is_stream_first : {false, true}) {
        clients.clear();
        connections came;
        accept_stream stream(listener, collector{&came});
        tracked single(async_accept(listener));
        if (is_stream_first) stream.start();
        single.state.start();
        if (not is_stream_first) stream.start();
        run_briefly();
        connect_clients(4);
        ASSERT_TRUE(run_until([&] { return single.is.dones == 1 and came.numbers.size() == 3; }));
        tracked waiting(async_accept(listener));
        waiting.state.start();
        run_briefly();
        stream.cancel();
        ASSERT_TRUE(run_until([&] { return came.dones == 1; })) << "despite other waiting accepts";
        EXPECT_EQ(came.code, ECANCELED);
        EXPECT_EQ(waiting.is.values, 0);
        connect_clients(1);
        ASSERT_TRUE(run_until_done(waiting.is));
        EXPECT_TRUE(succeeded(waiting.is));
    }
}

TEST_P(accept_streams, share_their_listener_with_each_other) {
    connections first_came, second_came;
    accept_stream first(listener, collector{&first_came}), second(listener, collector{&second_came});
    first.start();
    second.start();
    const auto both = [&] {
        std::vector<int> all = first_came.numbers;
        all.insert(all.end(), second_came.numbers.begin(), second_came.numbers.end());
        return all;
    };
    for (const int burst : {1, 1, 20, 1}) {
        connect_clients(burst);
        ASSERT_TRUE(run_until([&] { return both().size() == clients.size(); }));
    }
    first.cancel();
    ASSERT_TRUE(run_until([&] { return first_came.dones == 1; }));
    connect_clients(5);
    ASSERT_TRUE(run_until([&] { return both().size() == clients.size(); }));
    EXPECT_TRUE(is_complete(both()));
    second.cancel();
    ASSERT_TRUE(run_until([&] { return second_came.dones == 1; }));
}

}  // namespace
}  // namespace sluice::io::conformance
