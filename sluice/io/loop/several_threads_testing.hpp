#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "sluice/io/epoll/epoll_multiplexer.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/uring/uring_multiplexer.hpp"

// Shared by the tests of multiplexers for several threads.

namespace sluice::io::test_kit {

constexpr int run_threads_count = 4;

/// Threads that run a multiplexer until this is destroyed and nothing is pending.
class run_threads {
public:
    explicit run_threads(io_multiplexer& of) : promise_(of) {
        for (int i = 0; i < run_threads_count; ++i) {
            all_.emplace_back([&of] {
                while (of.run().value_or(0) > 0) {}
            });
        }
    }

private:
    std::vector<std::jthread> all_;
    io_multiplexer::work_guard promise_;  // is destroyed first
};

/// A sender that waits for external work without a deadline, and whose result does
/// not depend on the work.
class external_sender {
public:
    using result_type = result<void>;

    external_sender(io_multiplexer& on, external_work& work) noexcept : on_(&on), work_(&work) {}
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *on_; }
    void configure(operation& configured) const noexcept { configure_external(configured, *on_, *work_, {}); }
    [[nodiscard]] static result_type collect(const operation&) noexcept { return {}; }

private:
    io_multiplexer* on_;
    external_work* work_;
};

[[nodiscard]] inline std::unique_ptr<io_multiplexer> multiplexer_for_threads(std::string_view back_end) {
    return back_end == "epoll" ? make_epoll_multiplexer(1, run_by::several).value()
                               : make_uring_multiplexer({.threads = run_by::several}).value();
}

[[nodiscard]] inline std::vector<const char*> back_ends_for_threads() {
    if (try_uring()) return {"epoll", "io_uring"};
    return {"epoll"};
}

/// A test with a multiplexer for several threads of each back end.
class several_threads : public testing::TestWithParam<const char*> {
protected:
    [[nodiscard]] io_multiplexer& loop() const { return *loop_; }

private:
    std::unique_ptr<io_multiplexer> loop_ = multiplexer_for_threads(GetParam());
};

#define SLUICE_FOR_SEVERAL_THREADS(fixture)                                                      \
    INSTANTIATE_TEST_SUITE_P(io, fixture,                                                        \
                             testing::ValuesIn(::sluice::io::test_kit::back_ends_for_threads()), \
                             [](const auto& info) { return std::string(info.param); })

}  // namespace sluice::io::test_kit
