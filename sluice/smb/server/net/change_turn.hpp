#pragma once

#include <optional>

#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/net/own_change.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/vfs/node_data.hpp"

namespace sluice::smb::server {

/// A request's turn at something that one request at a time may do, such as change the attributes
/// of a file, or continue the scan of a directory. Turns are taken in order of arrival.
///
///     change_turn turn(r, file);
///     if (not turn.is_taken()) status = co_await turn.wait();
///
/// Lifetime: the lock, the file and the request outlive it. Loop-owned.
class change_turn {
public:
    /// Takes the turn if it is free; otherwise queues for it.
    change_turn(request& by, fifo_lock& at) noexcept : change_turn(by, at, nullptr) {}
    /// A turn for a change of a file, which counts the change.
    change_turn(request& by, file_state& file) noexcept : change_turn(by, file.changes, &file) {}
    change_turn(const change_turn&) = delete;
    change_turn& operator=(const change_turn&) = delete;
    ~change_turn() {
        if (is_taken_ and file_ != nullptr) file_->end_change();
        at_.unlock(place_);
    }

    [[nodiscard]] bool is_taken() const noexcept { return is_taken_; }

    /// Waits for the turn. Errors: the status of the interrupt; then the request has no turn.
    /// Suspends.
    [[nodiscard]] io::task<wire::nt_status> wait() noexcept {
        io::task<wire::nt_status> waiting = by_.wait(granted_);
        const wire::nt_status outcome = co_await std::move(waiting);
        record(at_.is_held_by(place_));
        co_return is_taken_ ? wire::nt_status::success : outcome;
    }

private:
    change_turn(request& by, fifo_lock& at, file_state* changed) noexcept
        : by_(by), at_(at), file_(changed), granted_(by.loop()), place_(granted_) {
        record(at_.lock(place_));
    }
    void record(bool is_taken) noexcept {
        is_taken_ = is_taken;
        if (is_taken and file_ != nullptr) file_->begin_change();
    }

    request& by_;
    fifo_lock& at_;
    file_state* const file_;  // null: not a change of one
    one_shot_event<wire::nt_status> granted_;
    fifo_lock::lock_request place_;
    bool is_taken_ = false;
};

/// Takes the turn that a read of a stream needs, because writes of it read and change the whole
/// stream. Other reads need none (node_data::transfers_at_once). Returns the status of an
/// interrupt, or success.
[[nodiscard]] inline io::task<wire::nt_status> take_read_turn(std::optional<change_turn>& turn, request& r,
                                                              const open& of) noexcept {
    turn.emplace(r, of.file->changes);
    if (turn->is_taken()) co_return wire::nt_status::success;
    io::task<wire::nt_status> waiting = turn->wait();
    co_return co_await std::move(waiting);
}

/// Returns whether a change of a node may wait for other calls. A stream that is not used like a
/// file may be moved or copied by its change, which waits for the device, and for other moves.
[[nodiscard]] inline vfs::waits_for_calls waits_of_change(vfs::node& changed) noexcept {
    const vfs::node_data* const data = changed.data();
    const bool may_move =
        data != nullptr and not data->transfers_at_once() and not changed.stream_name().empty();
    return may_move ? vfs::waits_for_calls::yes : vfs::waits_for_calls::no;
}

/// Carries out a call that changes a file's attributes, streams, EAs, security descriptor or size,
/// in its turn (file_state::changes). `waits`: whether it may wait for other calls, which
/// waits_of_change() knows for changes of streams. Otherwise as request::call. Suspends.
template <std::invocable Call>
[[nodiscard]] io::task<std::invoke_result_t<Call&>> call_in_turn(
    request& r, const open& one, Call call, vfs::waits_for_calls waits = vfs::waits_for_calls::no) noexcept {
    change_turn turn(r, *one.file);
    if (not turn.is_taken()) {
        const wire::nt_status refused = co_await turn.wait();
        if (refused != wire::nt_status::success)
            co_return cancelled_outcome<std::invoke_result_t<Call&>>(refused);
    }
    if (waits == vfs::waits_for_calls::no) waits = waits_of_change(*one.node);
    co_return co_await r.call(one.node->domain(), std::move(call), waits);
}

/// Returns whether an outcome of a call is success: an nt_status, or a std::expected.
[[nodiscard]] inline bool has_succeeded(wire::nt_status outcome) noexcept {
    return outcome == wire::nt_status::success;
}
template <class Value>
[[nodiscard]] bool has_succeeded(const std::expected<Value, wire::nt_status>& outcome) noexcept {
    return outcome.has_value();
}

/// The same as call_in_turn for a change through an open: times that it keeps (sticky_times) are as
/// before it afterwards, and the clients that cache its directory notice it.
template <std::invocable Call>
[[nodiscard]] io::task<std::invoke_result_t<Call&>> change_in_turn(request& r, open& one,
                                                                   Call call) noexcept {
    change_turn turn(r, *one.file);
    if (not turn.is_taken()) {
        const wire::nt_status refused = co_await turn.wait();
        if (refused != wire::nt_status::success)
            co_return cancelled_outcome<std::invoke_result_t<Call&>>(refused);
    }
    // In the turn: a SET_INFO before it may have changed which times the open keeps.
    time_preserver times(one);
    own_change seen(r.host());
    const auto change = [&] {
        seen.begin(*one.node, one.shows_end.load(std::memory_order_relaxed));
        if (times.is_needed()) times.ask();
        auto outcome = call();
        times.restore();
        seen.end(has_succeeded(outcome), one.node.get());
        return outcome;
    };
    auto done = co_await r.call(one.node->domain(), change, waits_of_change(*one.node));
    times.record();
    if (has_succeeded(done)) seen.break_leases(one);
    co_return done;
}

}  // namespace sluice::smb::server
