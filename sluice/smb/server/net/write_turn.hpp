#pragma once

#include <optional>

#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/vfs/node_data.hpp"

namespace sluice::smb::server {

/// The turn of a write through an open, if other changes of the file must not run at the same time,
/// and the times that the open keeps, which are as before the write afterwards. Most writes need
/// neither; then it neither locks nor suspends.
///
///     write_turn turn(r, to, data);
///     if (turn.is_needed()) status = co_await turn.begin();
///     ...  // the transfer
///     if (turn.restores()) co_await turn.restore();
///     turn.release();
///
/// Invariant: the times that an open keeps change only in a turn of its file. So a write with a
/// turn restores the times that it has asked for, and no SET_INFO comes in between. A write
/// without one, in whose course a SET_INFO sets or freezes times, restores them as that has left
/// them; a change through another open after that SET_INFO is lost then.
/// Lifetime: the request and the open outlive it. Loop-owned.
class write_turn {
public:
    write_turn(request& by, open& to, const vfs::node_data& data) noexcept
        : by_(by), to_(to), transfers_at_once_(data.transfers_at_once()) {}
    write_turn(const write_turn&) = delete;
    write_turn& operator=(const write_turn&) = delete;

    [[nodiscard]] bool is_needed() const noexcept { return not transfers_at_once_ or to_.kept().any(); }
    /// Takes the turn, and asks for the times to keep. Errors: the status of an interrupt; then
    /// nothing may be written. Suspends.
    [[nodiscard]] io::task<wire::nt_status> begin() noexcept {
        io::task<wire::nt_status> taking = take();
        const wire::nt_status refused = co_await std::move(taking);
        if (refused != wire::nt_status::success or not times_->is_needed()) co_return refused;
        const auto ask = [this] {
            times_->ask();
            return wire::nt_status::success;
        };
        co_return co_await by_.call(to_, ask);
    }

    /// After the transfer: returns whether restore() has anything to do.
    [[nodiscard]] bool restores() const noexcept { return times_ ? times_->is_needed() : to_.kept().any(); }
    /// Restores the times that the open keeps. Suspends.
    [[nodiscard]] io::task<void> restore() noexcept {
        if (not times_) {
            io::task<wire::nt_status> taking = take();
            const wire::nt_status refused = co_await std::move(taking);
            if (refused != wire::nt_status::success) co_return;
            times_->go_by_set_times();
        }
        const auto restore_times = [this] {
            times_->restore();
            return wire::nt_status::success;
        };
        if (times_->is_needed()) (void)co_await by_.call(to_, restore_times);
        times_->record();
    }
    void release() noexcept { turn_.reset(); }

private:
    // Also samples which times the open keeps.
    [[nodiscard]] io::task<wire::nt_status> take() noexcept {
        ENSURE(not turn_ and not times_, "a write takes its turn once");
        turn_.emplace(by_, *to_.file);
        if (not turn_->is_taken()) {
            io::task<wire::nt_status> waiting = turn_->wait();
            const wire::nt_status refused = co_await std::move(waiting);
            if (refused != wire::nt_status::success) co_return refused;
        }
        times_.emplace(to_);
        co_return wire::nt_status::success;
    }

    request& by_;
    open& to_;
    const bool transfers_at_once_;
    std::optional<change_turn> turn_;
    std::optional<time_preserver> times_;  // null: the write has no turn
};

}  // namespace sluice::smb::server
