#pragma once

// Shared by the tests of coroutines.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/stream/pipe_handle.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

namespace sluice::io {

struct coroutine_back_end {
    std::string name;
    result<std::unique_ptr<io_multiplexer>> (*make)();
};

/// Returns the multiplexers that this machine supports.
inline std::vector<coroutine_back_end> coroutine_back_ends() {
    std::vector<coroutine_back_end> found;
    found.push_back({.name = "epoll", .make = [] { return make_epoll_multiplexer(); }});
    if (make_uring_multiplexer().has_value())
        found.push_back({.name = "io_uring", .make = [] { return make_uring_multiplexer(); }});
    return found;
}

/// Tests that coroutines keep their promises over every multiplexer.
class coroutine_test : public testing::TestWithParam<coroutine_back_end> {
protected:
    pipe_handle::pair make_pipe() {
        auto pipe = pipe_handle::anonymous().value();
        EXPECT_TRUE(pipe.reader.set_multiplexer(multiplexer_.get()).has_value());
        EXPECT_TRUE(pipe.writer.set_multiplexer(multiplexer_.get()).has_value());
        return pipe;
    }
    template <class T>
    T run(task<T> root) {
        return sync_wait(*multiplexer_, std::move(root));
    }

    std::unique_ptr<io_multiplexer> multiplexer_ = GetParam().make().value();
};

/// Reads one byte. Returns 0, or the error.
inline task<int> read_one(pipe_handle& from) {
    std::array<std::byte, 1> one{};
    const auto read = co_await co_read(from, io_request<bytes_type>{one});
    co_return read.has_value() ? 0 : read.error().code();
}

inline result<void> write_one(pipe_handle& to) {
    std::array<std::byte, 1> one{};
    const auto wrote = to.write(io_request<const_bytes_type>{one});
    if (not wrote) return failure(wrote.error());
    return {};
}

}  // namespace sluice::io

/// Runs a suite of coroutine tests over every multiplexer.
#define SLUICE_TEST_COROUTINES_OVER_ALL(suite)                                                            \
    INSTANTIATE_TEST_SUITE_P(over, suite, testing::ValuesIn(::sluice::io::coroutine_back_ends()),         \
                             [](const testing::TestParamInfo<::sluice::io::coroutine_back_end>& tested) { \
                                 return tested.param.name;                                                \
                             })
