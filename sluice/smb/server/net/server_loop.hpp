#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "sluice/base/buffer_pool.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/cross_loop_post.hpp"
#include "sluice/smb/server/net/data_path.hpp"

namespace sluice::smb::server {

/// One of the loops a server runs on, with what belongs to it alone. A connection has its home on one, and
/// all its coroutines stay there. Thread safety: the loop's thread, but for what says otherwise.
struct server_loop {
    server_loop(io::io_multiplexer& with, std::size_t bytes_max) noexcept
        : multiplexer(with), buffer_bytes_max(bytes_max), connections(with) {}

    io::io_multiplexer& multiplexer;
    buffer_pool buffers;
    const std::size_t buffer_bytes_max;  // its part of limits::buffer_bytes_max
    data_path data;
    io::task_group connections;

    template <class What>
    void do_here(What what) noexcept {
        do_on(multiplexer, std::move(what));
    }
};

/// Which loop a new connection has its home on: the one with the fewest connections of the same client, so
/// that those one client has open, its channels, keep as many cores busy as there are; of several such, the
/// one with the fewest of all clients.
/// Thread safety: under the latch. Allocates: an entry for each client. Complexity: O(loops).
class loop_choice {
public:
    explicit loop_choice(std::size_t loops) : of_all_(loops) {}

    /// The loop for one more connection of a client, which leave() ends.
    [[nodiscard]] std::size_t enter(const std::string& client);
    /// The same, where the loop has been chosen.
    void enter(const std::string& client, std::size_t loop);
    void leave(const std::string& client, std::size_t loop) noexcept;
    /// Whether a client has connections on a loop.
    [[nodiscard]] bool has(const std::string& client, std::size_t loop) const noexcept;

private:
    std::vector<std::size_t> of_all_;
    std::unordered_map<std::string, std::vector<std::size_t>> of_client_;
};

}  // namespace sluice::smb::server
