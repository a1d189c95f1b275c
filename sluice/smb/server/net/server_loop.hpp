#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/base/buffer_pool.hpp"
#include "sluice/base/clock.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/server/core/cross_loop_post.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/net/data_path.hpp"
#include "sluice/smb/server/net/pipe_queue.hpp"

namespace sluice::smb::server {

/// The work of one kind that a loop has done in its present turn, which has a bound. Loop-owned.
class turn_budget {
public:
    /// Returns whether less than `most` was spent in this turn.
    [[nodiscard]] bool has_room(std::uint64_t turn, std::size_t most) const noexcept {
        return turn_ != turn or spent_ < most;
    }
    void spend(std::uint64_t turn, std::size_t amount) noexcept {
        if (std::exchange(turn_, turn) != turn) spent_ = 0;
        spent_ += amount;
        ENSURE(spent_ >= amount, "a turn does not do more than can be counted");
    }

private:
    std::uint64_t turn_ = 0;
    std::size_t spent_ = 0;
};

/// One of the loops a server runs on, with its own resources. A connection has its home on one, and
/// all its coroutines stay there. Loop-owned: the loop's thread, except where a member says
/// otherwise.
struct server_loop {
    server_loop(io::io_multiplexer& with, std::size_t bytes_max, std::size_t index = 0) noexcept
        : multiplexer(with), number(index), buffer_bytes_max(bytes_max), connections(with) {}

    io::io_multiplexer& multiplexer;
    const std::size_t number;  // its index among the loops of the server
    buffer_pool buffers;
    const std::size_t buffer_bytes_max;  // its part of limits::buffer_bytes_max
    data_path data;
    io::task_group connections;
    clock_source::steady_time enforce_buffer_limit_next{};  // see buffer_limit.cpp
    pipe_queue pipe_requests;                               // for the next turn; see pipe_turn.hpp
    std::uint64_t last_pipe_turn = 0;                       // the last turn with one on a pipe
    turn_budget pipe_ends;                                  // limits::pipe_ends_per_turn

    /// Any thread.
    template <class What>
    void do_here(What what) noexcept {
        do_on(multiplexer, std::move(what));
    }
};

/// Which loop a new connection has its home on: the one with the fewest connections of the same
/// client, so that those one client has open, its channels, keep as many cores busy as there are;
/// of several such, the one with the fewest of all clients.
/// Invariant: the connections of a client on a loop are among all on that loop.
/// Monitor: any thread; `mutex_` guards the counts. Allocates: an entry for each client.
/// Complexity: O(loops).
class loop_choice {
public:
    explicit loop_choice(std::size_t loops) : of_all_(loops) {}

    /// Returns the loop for one more connection of a client; leave() ends it.
    [[nodiscard]] std::size_t enter(const std::string& client);
    /// The same for a loop that the caller has chosen.
    void enter(const std::string& client, std::size_t loop);
    void leave(const std::string& client, std::size_t loop) noexcept;
    /// Returns whether a client has connections on a loop.
    [[nodiscard]] bool has(const std::string& client, std::size_t loop) const noexcept;

private:
    mutable ranked_mutex<lock_rank::registry> mutex_;
    std::vector<std::size_t> of_all_ SLUICE_GUARDED_BY(mutex_);
    std::unordered_map<std::string, std::vector<std::size_t>> of_client_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
