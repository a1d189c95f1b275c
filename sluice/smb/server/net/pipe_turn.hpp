#pragma once

#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/open/named_pipe.hpp"

namespace sluice::smb::server {

/// A request's turn at a pipe. The requests on a pipe are processed in order of arrival; and a loop
/// processes one request on a pipe in each of its turns, so that it serves others between two calls
/// of RPC services, each of which may take a few milliseconds. The clients of a loop take turns at
/// that (pipe_queue). No interim reply is sent, as for other turns: see change_turn.
///
///     pipe_turn turn(r, *file.pipe);
///     status = co_await turn.take();
///     ...  // the request
///     co_await turn.finish();
///
/// Invariant: a request that waits for its loop holds its pipe, and one that holds its loop waits
/// only for the next turn. So no cycle of waits exists.
/// Lifetime: the pipe and the request outlive it. Loop-owned.
class pipe_turn {
public:
    pipe_turn(request& by, named_pipe& at) noexcept : by_(by), at_(at), at_pipe_(by, at.requests) {}

    /// Waits for the turn. Errors: the status of an interrupt; then the request is not processed.
    /// Suspends, unless the pipe and the loop are free. Allocates: the coroutine.
    [[nodiscard]] io::task<wire::nt_status> take() noexcept;
    /// Does the work that the request has asked for. In each of its turns, the loop does at most
    /// limits::pipe_ends_per_turn of such work, whichever requests have asked for it. No interrupt
    /// ends it. Suspends, if there is much. Allocates: the coroutine.
    [[nodiscard]] io::task<void> finish() noexcept;

private:
    request& by_;
    named_pipe& at_;
    change_turn at_pipe_;
};

/// Waits until the requests that have arrived at a pipe before this one have been processed, in the
/// same or an earlier message. For one that a client sends after them without waiting for their
/// replies, such as a READ. Errors: the status of an interrupt. Suspends, unless the pipe is free.
/// Allocates: the coroutine.
[[nodiscard]] io::task<wire::nt_status> finish_earlier(request& than, named_pipe& at) noexcept;

}  // namespace sluice::smb::server
