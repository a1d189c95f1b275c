#pragma once

#include <unistd.h>

#include <string>
#include <tuple>

#include "sluice/io/stream/listening_socket_handle.hpp"
#include "tests/conformance/harness.hpp"

namespace sluice::io::conformance {

enum class family : std::uint8_t { ip, local };
using listener_setting = std::tuple<back_end, family>;

inline std::string name_of_setting(const testing::TestParamInfo<listener_setting>& info) {
    return std::get<0>(info.param).name + (std::get<1>(info.param) == family::ip ? "_tcp" : "_unix");
}

/// A test with a listener, attached to the multiplexer under test, over TCP and over Unix sockets.
class with_listener : public testing::TestWithParam<listener_setting>, protected with_multiplexer {
protected:
    with_listener() : with_multiplexer(std::get<0>(GetParam())) {
        // In the abstract name space, which leaves no file behind; each process and
        // test has its own name.
        static int counter = 0;
        const std::string name =
            std::string(1, '\0') + "sluice-" + std::to_string(::getpid()) + "-" + std::to_string(++counter);
        const bool is_ip = std::get<1>(GetParam()) == family::ip;
        const auto local = is_ip ? socket_address::loopback_v4(0) : socket_address::local(name).value();
        listener = listening_socket_handle::listen(local).value();
        address = listener.local_address().value();
        attach(listener);
    }
    void TearDown() override { explain_failure(); }

    listening_socket_handle listener;
    socket_address address;
};

}  // namespace sluice::io::conformance
