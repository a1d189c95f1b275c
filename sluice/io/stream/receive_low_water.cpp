#include "sluice/io/stream/receive_low_water.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace sluice::io {

namespace {

constexpr std::size_t worth_a_call_bytes = 64U << 10;  // fewer may arrive in one segment
constexpr std::size_t bytes_max = 1U << 20;            // more would exceed the CPU's cache

}  // namespace

void receive_low_water::expect(std::size_t bytes) noexcept {
    if (bytes == 0) {
        if (raised_ and std::chrono::steady_clock::now() - *raised_ > slow) rests_ = rests_max;
        raised_.reset();
        is_within_ = false;
    } else if (not std::exchange(is_within_, true)) {
        is_resting_ = rests_ != 0;
        if (is_resting_) --rests_;
    }
    const bool is_worth_it = bytes >= worth_a_call_bytes and not is_resting_;
    apply(is_worth_it ? std::min(bytes, bytes_max) : 1);
}

void receive_low_water::apply(std::size_t bytes) noexcept {
    ENSURE(bytes != 0 and bytes <= bytes_max, "a mark at which nothing wakes, or that leaves the cache");
    if (bytes == applied_) return;
    if (bytes != 1 and not raised_) raised_ = std::chrono::steady_clock::now();
    const int value = static_cast<int>(bytes);
    // A socket that refuses continues to wake the reader for every byte.
    (void)::setsockopt(socket_->descriptor(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
    applied_ = bytes;
}

}  // namespace sluice::io
