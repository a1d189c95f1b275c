// Connections that the kernel accepts by itself (multishot): one submission, a completion for each.
//
// That is the cheapest way while connections come one by one. However, the kernel accepts all of
// them, and in a burst each pass needs a call of its own to collect them, where accept4 finds one
// after the other. So the first connection without a waiting operation ends it, and when all
// connections of the multishot call have been taken, connections are accepted by calls until there
// is none. That is also the back pressure: the kernel holds for us only the connections that came
// before it processed the end.

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/uring/backend.hpp"

namespace sluice::io::uring {

using detail::operation_record;

// Address space for the largest possible number of descriptors; memory only for those used. Without
// it connections are accepted by calls.
void multiplexer::reserve_links() noexcept {
    ENSURE(links_ == nullptr, "connections that wait to be taken would be lost");
    // fs.nr_open, unless an administrator has raised it.
    constexpr rlim_t links_max = rlim_t{1} << 20;
    rlimit open_files{};
    (void)::getrlimit(RLIMIT_NOFILE, &open_files);
    const std::size_t bytes = std::min(open_files.rlim_max, links_max) * sizeof(std::uint32_t);
    void* const at =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED) links_ = {static_cast<std::uint32_t*>(at), unmap{bytes}};
}

bool multiplexer::begin_accepting(registration& listener, accept_request& into) noexcept {
    if (is_for_threads()) return false;
    half_state& state = state_of(listener.side(direction::in));
    if (links_ == nullptr or state.acceptor != nullptr or state.polls_only) return false;
    ENSURE(not state.is_multishot and state.oldest_arrived == buffer_group::none,
           "connections are left of an earlier stream");
    state.acceptor = &into;
    state.is_bursting = true;  // some may be waiting
    return true;
}

void multiplexer::end_accepting(registration& listener) noexcept {
    half_state& state = state_of(listener.side(direction::in));
    ENSURE(not state.is_multishot and state.oldest_arrived == buffer_group::none);
    state.acceptor = nullptr;
}

// Returns false if the ring is full.
bool multiplexer::queue_accept(half_state& state) noexcept {
    registration::half& half = *state.half;
    ENSURE(half.in_flight == 0, "one accept of a listener at a time");
    operation_record& front = *half.queue.front();
    const bool stops = static_cast<const accept_request*>(front.argument)->stops;
    if (finish_accept(state)) return true;
    if (not state.is_multishot and stops) {
        state.has_ended = true;
        state.multishot_end = ECANCELED;
        return finish_accept(state);
    }
    if (not state.is_multishot and (state.is_bursting or state.polls_only)) {
        if (attempt(front)) {
            finish_front(half);
            return true;
        }
        state.is_bursting = false;
        if (state.polls_only) return state.is_polling or queue_poll(state);
    }
    if (not state.is_multishot and not arm_accept(state)) return false;
    half.in_flight = 1;
    front.at = operation_record::stage::in_flight;
    if (stops) backend_cancel(front);
    return true;
}

bool multiplexer::arm_accept(half_state& state) noexcept {
    ENSURE(not state.is_multishot and state.oldest_arrived == buffer_group::none,
           "armed while the kernel accepts, or while connections wait to be taken");
    io_uring_sqe* const entry = ring_.next();
    if (entry == nullptr) return false;
    accept_request& request = *state.acceptor;
    request.newest_bytes = socket_address::capacity;
    // If the kernel can accept while the address is read, the address may belong to another
    // connection.
    const bool asks = ring_.defers_work();
    io_uring_prep_multishot_accept(entry, state.half->owner->native.descriptor,
                                   asks ? static_cast<sockaddr*>(request.newest.data()) : nullptr,
                                   asks ? &request.newest_bytes : nullptr, SOCK_CLOEXEC);
    name_file(*entry, *state.half->owner);
    entry->user_data = state.in_flight_as = address(completion_target::accept, &state);
    state.is_multishot = true;
    return true;
}

void multiplexer::notify_peer(operation_record& op) noexcept {
    ENSURE(op.kind == operation_kind::accept, "the argument of no other kind is an address");
    auto* const into = static_cast<socket_address*>(op.argument);
    if (into == nullptr) return;
    const auto asked = peer_address_of({.descriptor = static_cast<int>(op.transferred)});
    *into = asked ? *asked : socket_address();
}

// Gives the front a connection or, as an `accept_ahead`, the reason why there will be none. Returns
// whether there was either.
bool multiplexer::finish_accept(half_state& state) noexcept {
    operation_record& front = *state.half->queue.front();
    // Shares the listener with a stream.
    const bool is_single = front.kind == operation_kind::accept;
    ENSURE(is_single or front.kind == operation_kind::accept_ahead, "a connection for what accepts none");
    if (state.oldest_arrived != buffer_group::none) {
        front.transferred = state.oldest_arrived;
        if (is_single) notify_peer(front);
        state.oldest_arrived = links_[state.oldest_arrived];
    } else if (is_single) {
        return false;
    } else if (state.has_ended) {
        state.has_ended = false;
        front.error_code = state.multishot_end;
    } else {
        return false;
    }
    finish_front(*state.half);
    return true;
}

void multiplexer::record_connection(half_state& state, int descriptor) noexcept {
    const auto arrived = static_cast<std::uint32_t>(descriptor);
    if (arrived >= links_.get_deleter().bytes / sizeof(std::uint32_t)) {
        // The limit has been raised since. For the client this looks like a lack of descriptors.
        (void)::close(descriptor);
        return;
    }
    links_[arrived] = buffer_group::none;
    ENSURE(state.newest_arrived != arrived or state.oldest_arrived == buffer_group::none,
           "a descriptor that is open has arrived again");
    if (state.oldest_arrived == buffer_group::none) {
        state.oldest_arrived = arrived;
    } else {
        links_[state.newest_arrived] = arrived;
    }
    state.newest_arrived = arrived;
    if (state.half->in_flight != 0 or state.is_bursting) return;
    state.is_bursting = true;
    if (not state.cancel_link.is_linked()) cancelled_.push_back(state);
}

// The address belongs to the newest connection; if others follow it, to none that is known.
void multiplexer::record_peer(half_state& state) noexcept {
    accept_request& request = *state.acceptor;
    const bool is_last = not ring_.has_completions() and not ring_.has_overflowed();
    if (is_last and ring_.defers_work()) {
        request.newest.resize(request.newest_bytes);
        request.peer = request.newest;
        request.knows_peer = true;
    }
    request.newest_bytes = socket_address::capacity;
}

void multiplexer::on_accept(half_state& state, int outcome, unsigned flags) noexcept {
    registration::half& half = *state.half;
    ENSURE(state.is_multishot, "a completion of an accept that is over");
    if (outcome >= 0) {
        record_connection(state, outcome);
        if (half.in_flight != 0) record_peer(state);
    }
    if ((flags & IORING_CQE_F_MORE) == 0) {
        state.is_multishot = false;
        if (state.cancel_link.is_linked()) cancelled_.erase(state);
        state.has_cancelled = false;
        // A kernel that would not wait, or does not support multishot on this socket, gets ordinary
        // requests.
        state.polls_only = outcome == -EAGAIN or outcome == -EINVAL;
        const bool goes_on = outcome >= 0 or state.polls_only or outcome == -EINTR or outcome == -ECANCELED or
                             is_of_dead_connection(-outcome);
        state.has_ended = not goes_on;
        state.multishot_end = -outcome;
    }
    if (half.in_flight == 0) {
        if (not half.queue.empty()) mark_dirty(half);
        return;
    }
    if (finish_accept(state) or state.is_multishot) return;
    half.in_flight = 0;
    half.queue.front()->at = operation_record::stage::waiting;
    mark_dirty(half);
}

}  // namespace sluice::io::uring
