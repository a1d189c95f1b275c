#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sluice/io/asio/names.hpp"
#include "sluice/io/stream/socket_testing.hpp"

// Shared by the tests of the Asio adapter. Only tests include this.

namespace sluice::io::test_kit {

/// A test with an io_context on a multiplexer of each kind, for one thread and for several.
class with_io_context : public with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (multiplexer != nullptr) context.emplace(*multiplexer);
    }
    void TearDown() override { context.reset(); }

    std::optional<asio_names::io_context> context;
};

inline std::vector<multiplexer_kind> io_context_kinds_for_threads() {
    return {{"epoll_for_threads", [] { return make_epoll_multiplexer(1, run_by::several); }},
            {"io_uring_for_threads", [] { return make_uring_multiplexer({.threads = run_by::several}); }}};
}

inline std::vector<multiplexer_kind> io_context_kinds() {
    auto kinds = multiplexer_kinds();
    for (auto& each : io_context_kinds_for_threads())
        kinds.push_back(std::move(each));
    return kinds;
}

}  // namespace sluice::io::test_kit
