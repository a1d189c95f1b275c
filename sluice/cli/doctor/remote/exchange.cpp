#include "sluice/cli/doctor/remote/exchange.hpp"

#include <array>
#include <cerrno>
#include <vector>

namespace sluice::cli::doctor {

using smb::client::probed_protocol;

namespace {

constexpr std::size_t received_bytes_max = smb::client::limits::first_frame_bytes_max + 4;

[[nodiscard]] std::chrono::milliseconds since(std::chrono::steady_clock::time_point began) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
}

}  // namespace

probe_outcome exchange_over(io::socket_handle& connected, std::span<const std::byte> request,
                            std::chrono::steady_clock::time_point until) {
    const auto began = std::chrono::steady_clock::now();
    const deadline within(until);
    probe_outcome outcome{.how = reaction::closed};
    // A server that has closed already may still have sent bytes, so the result of this call does
    // not matter.
    (void)connected.write(io::io_request<io::const_bytes_type>{.buffers = request}, within);
    std::vector<std::byte> received;
    std::array<std::byte, 4096> piece;
    while (received.size() < received_bytes_max) {
        const auto got = connected.read(io::io_request<io::bytes_type>{.buffers = piece}, within);
        if (not got) {
            const bool is_late = got.error().code() == ETIMEDOUT;
            outcome.how = is_late ? reaction::silent : reaction::closed;
            outcome.code = got.error().code();
            break;
        }
        if (got->size() == 0) break;
        received.insert(received.end(), got->data(), got->data() + got->size());
        outcome.answer = smb::client::classify_probe_answer(received);
        if (outcome.answer.protocol == probed_protocol::incomplete) continue;
        outcome.how = reaction::answered;
        break;
    }
    outcome.received_bytes = received.size();
    outcome.took = since(began);
    return outcome;
}

probe_outcome exchange_with(const io::socket_address& address, std::span<const std::byte> request,
                            std::chrono::steady_clock::time_point until) {
    const auto began = std::chrono::steady_clock::now();
    auto connected = io::socket_handle::connect(address, {}, deadline(until));
    if (not connected)
        return {.how = reaction::unreachable, .code = connected.error().code(), .took = since(began)};
    return exchange_over(*connected, request, until);
}

}  // namespace sluice::cli::doctor
