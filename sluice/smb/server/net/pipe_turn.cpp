#include "sluice/smb/server/net/pipe_turn.hpp"

#include <utility>
#include <vector>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_loop.hpp"

namespace sluice::smb::server {

using wire::nt_status;

io::task<nt_status> pipe_turn::take() noexcept {
    if (not at_pipe_.is_taken()) {
        io::task<nt_status> waiting = at_pipe_.wait();
        const nt_status refused = co_await std::move(waiting);
        if (refused != nt_status::success) co_return refused;
    }
    server_loop& home = by_.connection().home();
    one_shot_event<nt_status> granted(by_.loop());
    const pipe_queue::place at_loop(home.pipe_requests, by_.session->admitted.client, granted);
    if (not at_loop.is_granted()) {
        io::task<nt_status> waiting = by_.wait(granted);
        const nt_status outcome = co_await std::move(waiting);
        if (not at_loop.is_granted()) co_return outcome;
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
    turn_budget& budget = by_.connection().home().pipe_ends;
    for (pipe_work& one : work) {
        ENSURE(one != nullptr, "work that a request has asked for can be done");
        while (not budget.has_room(by_.loop().turn(), limits::pipe_ends_per_turn)) {
            io::task<void> others = later_turn(by_.loop());
            co_await within_work(std::move(others));
        }
        budget.spend(by_.loop().turn(), one());
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
