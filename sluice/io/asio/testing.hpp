#pragma once

#include <optional>

#include "sluice/io/asio/names.hpp"
#include "sluice/io/socket_testing.hpp"

// What the tests of the Asio adapter share. Only tests include this.

namespace sluice::io::test_kit {

/// A test with an io_context on a multiplexer of each kind.
class with_io_context : public with_multiplexer {
protected:
    void SetUp() override {
        with_multiplexer::SetUp();
        if (multiplexer != nullptr) context.emplace(*multiplexer);
    }
    void TearDown() override { context.reset(); }

    std::optional<asio_names::io_context> context;
};

}  // namespace sluice::io::test_kit
