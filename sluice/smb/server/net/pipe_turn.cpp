#include "sluice/smb/server/net/pipe_turn.hpp"

#include <utility>
#include <vector>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/net/connection.hpp"

namespace sluice::smb::server {

using wire::nt_status;

io::task<nt_status> pipe_turn::take() noexcept {
    if (not at_pipe_.is_taken()) {
        io::task<nt_status> waiting = at_pipe_.wait();
        const nt_status refused = co_await std::move(waiting);
        if (refused != nt_status::success) co_return refused;
    }
    server_loop& home = by_.connection().home();
    change_turn at_loop(by_, home.pipe_requests);
    if (not at_loop.is_taken()) {
        io::task<nt_status> waiting = at_loop.wait();
        const nt_status refused = co_await std::move(waiting);
        if (refused != nt_status::success) co_return refused;
    }
    if (home.last_pipe_turn == by_.loop().turn()) {
        io::task<void> others = later_turn(by_.loop());
        co_await within_work(std::move(others));
        if (by_.interrupted()) co_return *by_.interrupted();
    }
    ENSURE(home.last_pipe_turn != by_.loop().turn(), "a loop processes one request on a pipe in a turn");
    home.last_pipe_turn = by_.loop().turn();
    co_return nt_status::success;
}

io::task<void> pipe_turn::finish() noexcept {
    ENSURE(at_pipe_.is_taken(), "the request that has taken the turn finishes it");
    std::vector<pipe_work> work = at_.take_work();
    std::size_t done = 0;
    for (pipe_work& one : work) {
        ENSURE(one != nullptr, "work that a request has asked for can be done");
        one();
        if (++done % limits::pipe_ends_per_turn != 0 or done == work.size()) continue;
        io::task<void> others = later_turn(by_.loop());
        co_await within_work(std::move(others));
    }
}

io::task<nt_status> finish_earlier(request& than, named_pipe& at) noexcept {
    change_turn turn(than, at.requests);
    if (turn.is_taken()) co_return nt_status::success;
    io::task<nt_status> waiting = turn.wait();
    const nt_status outcome = co_await std::move(waiting);
    ENSURE(outcome == nt_status::success or than.interrupted(), "only an interrupt ends a wait for a turn");
    co_return outcome;
}

}  // namespace sluice::smb::server
