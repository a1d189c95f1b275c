#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/sender/sender.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

// Shared parts of the tests of sockets, pipes and splices. Only tests include this.

namespace sluice::io::test_kit {

/// The multiplexers to run a test over.
struct multiplexer_kind {
    std::string name;
    std::function<result<std::unique_ptr<io_multiplexer>>()> make;
};

inline std::vector<multiplexer_kind> multiplexer_kinds() {
    return {{"epoll", [] { return make_epoll_multiplexer(); }},
            {"io_uring", [] { return make_uring_multiplexer(); }}};
}

inline std::string kind_name(const ::testing::TestParamInfo<multiplexer_kind>& info) {
    return info.param.name;
}

/// A test with a multiplexer of each kind.
class with_multiplexer : public ::testing::TestWithParam<multiplexer_kind> {
protected:
    void SetUp() override {
        auto made = GetParam().make();
        if (not made) GTEST_SKIP() << "no " << GetParam().name << " here: " << made.error().message();
        multiplexer = std::move(*made);
    }

    /// Runs the loop until `done`, or for five seconds, which is long for a test that succeeds.
    template <class Condition>
    [[nodiscard]] bool run_until(Condition done) {
        const auto end = multiplexer->now() + std::chrono::seconds(5);
        while (not done()) {
            if (multiplexer->now() > end) return false;
            (void)multiplexer->try_run_for(std::chrono::milliseconds(20));
        }
        return true;
    }

    std::unique_ptr<io_multiplexer> multiplexer;
};

/// The outcome of an operation.
template <class Result>
struct outcome {
    std::optional<Result> value;
    int dones = 0;
};

template <class Result>
struct recorder {
    outcome<Result>* to;
    void set_value(Result&& result) noexcept { to->value.emplace(std::move(result)); }
    void set_done() noexcept { ++to->dones; }
};

/// An operation and its outcome, together.
template <sender Sender>
class recorded {
public:
    using result_type = typename Sender::result_type;

    explicit recorded(Sender from) : state_(std::move(from), recorder<result_type>{&outcome_}) {}

    void start(initiation how = initiation::automatic) {
        outcome_ = {};
        state_.start(how);
    }
    void cancel() { state_.cancel(); }
    [[nodiscard]] bool done() const { return outcome_.dones == 1 and outcome_.value.has_value(); }
    [[nodiscard]] result_type& value() { return outcome_.value.value(); }

private:
    outcome<result_type> outcome_;
    io_operation_connection<Sender, recorder<result_type>> state_;
};

inline std::span<const std::byte> text(std::string_view s) {
    return std::as_bytes(std::span(s));
}

inline std::string string_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns bytes that differ wherever they are compared.
inline std::vector<std::byte> pattern(std::size_t size, std::uint32_t seed = 1) {
    std::vector<std::byte> bytes(size);
    for (auto& b : bytes) {
        seed = seed * 1664525 + 1013904223;
        b = static_cast<std::byte>(seed >> 24);
    }
    return bytes;
}

/// Interrupts every waiting system call, many times a second, while it exists.
class signal_storm {
public:
    signal_storm();
    ~signal_storm();
    signal_storm(const signal_storm&) = delete;
    signal_storm& operator=(const signal_storm&) = delete;
};

/// Two connected stream sockets of a kind: "tcp_v4", "tcp_v6", "unix".
struct stream_kind {
    std::string name;
    socket_address address;  // to listen at
};

inline std::vector<stream_kind> stream_kinds() {
    std::vector<stream_kind> kinds{{"tcp_v4", socket_address::loopback_v4(0)}};
    if (listening_socket_handle::listen(socket_address::loopback_v6(0)).has_value()) {
        kinds.push_back({"tcp_v6", socket_address::loopback_v6(0)});
    } else {
        GTEST_LOG_(INFO) << "this machine has no IPv6: tests over it are skipped";
    }
    kinds.push_back({"unix", {}});
    return kinds;
}

struct connection {
    socket_handle client;
    socket_handle server;
};

inline connection connect_streams(const stream_kind& kind, const socket_options& options = {}) {
    if (kind.address.family() == address_family::unspecified) {
        auto made = socket_handle::pair(socket_type::stream, options).value();
        return {std::move(made.first), std::move(made.second)};
    }
    auto listener = listening_socket_handle::listen(kind.address, {.accepted = options}).value();
    auto client = socket_handle::connect(listener.local_address().value(), options).value();
    return {std::move(client), listener.accept().value().socket};
}

}  // namespace sluice::io::test_kit
