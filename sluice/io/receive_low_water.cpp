#include "sluice/io/receive_low_water.hpp"

#include <sys/socket.h>

#include <algorithm>

namespace sluice::io {

namespace {

constexpr std::size_t worth_a_call_bytes = 64U << 10;  // less may come in one segment
constexpr std::size_t bytes_max = 1U << 20;            // more would leave the processor's cache

}  // namespace

void receive_low_water::expect(std::size_t bytes) noexcept {
    const std::size_t wanted = bytes < worth_a_call_bytes ? 1 : std::min(bytes, bytes_max);
    if (wanted == set_to_) return;
    const int value = static_cast<int>(wanted);
    // A socket that refuses goes on waking for every byte.
    (void)::setsockopt(socket_->descriptor(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
    set_to_ = wanted;
}

}  // namespace sluice::io
