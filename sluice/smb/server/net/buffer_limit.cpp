// Closes a connection when the buffers of its loop exceed the loop's part of the memory.

#include <algorithm>
#include <map>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"

namespace sluice::smb::server {

namespace {

// A closed connection needs a moment to release its buffers, and a search visits all connections.
constexpr std::chrono::milliseconds enforcement_interval{20};

struct use_of_client {
    std::size_t bytes = 0;
    connection* largest = nullptr;
};

// All connections without a user are one client: an attacker can have many addresses.
[[nodiscard]] std::string client_of(const connection& one) {
    const client_reference& by = one.admitted.counted.client();
    return by and by.is_user() ? by.name() : std::string("guests");
}

}  // namespace

void connection::enforce_buffer_limit() noexcept {
    ENSURE(loop().is_owner(), "a loop limits its own buffers");
    if (host_.clock().steady_now() < home_.enforce_buffer_limit_next) return;
    home_.enforce_buffer_limit_next = host_.clock().steady_now() + enforcement_interval;
    std::map<std::string, use_of_client> clients;
    std::size_t bytes = 0;
    for (connection* const one : host_.connections.of_loop(home_)) {
        // Those that end release theirs soon.
        if (one->is_closing()) continue;
        use_of_client& known = clients[client_of(*one)];
        known.bytes += one->buffer_bytes();
        bytes += one->buffer_bytes();
        if (known.largest == nullptr or one->buffer_bytes() > known.largest->buffer_bytes())
            known.largest = one;
    }
    if (bytes <= home_.buffer_bytes_max) return;
    const auto most =
        std::ranges::max_element(clients, {}, [](const auto& entry) { return entry.second.bytes; });
    host_.rejections.add(limit::buffer_bytes, most->first);
    most->second.largest->close("buffer limit reached for requests and replies");
}

}  // namespace sluice::smb::server
