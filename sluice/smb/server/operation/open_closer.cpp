#include "sluice/smb/server/operation/open_closer.hpp"

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/create_round.hpp"
#include "sluice/smb/server/operation/directory_caching.hpp"
#include "sluice/smb/server/operation/file_removal.hpp"
#include "sluice/smb/server/operation/lease_breaks.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// The work that the end of an open leaves to its caller, after the section of the file.
struct leftover {
    std::shared_ptr<file_state> file;
    open_protocol::removal_duty duty;
    decided_breaks breaks;
    std::shared_ptr<lease> lease;  // perhaps the last to hold it
    // false: writes through the open are in progress; the last one does the rest.
    bool has_left = false;

    [[nodiscard]] bool is_nothing() const noexcept { return not duty.of_this and not duty.of_file; }
};

// Gives up everything of an ended open that others see.
void leave(const file_section& held, server_context& host, open& one, leftover& left) noexcept {
    open_in_file& place = one.in_file(held);
    ENSURE(one.has_ended() and place.is_ending, "an open has ended before others see that it has");
    ENSURE(place.pending_writes == 0, "an open keeps its place in the file until its last write has ended");
    file_state& file = *one.file;
    file.locks(held).release_all(one);
    place.counted_locks.reset();
    one.leave_file(held);
    if (place.deletes_on_close) {
        file.set_delete_pending(held, one.shared_from_this());
        end_handle_caching(held, host, file, &one, left.breaks);
        end_watches_of_removed(held, file);
        record_states(held, file);
    }
    forget_record(held, one);
    // After the record of this open, which has released them.
    record_late_grants(held, file);
    left.lease = leave_lease(held, host, one);
    file.wake_caching_waiters(held);
    place.claim.cancel();
    place.claim_to_base.cancel();
    left.duty = file.protocol(held).leave(place.entry);
    if (left.duty.of_this) file.last_closer_parent(held) = one.parent_key;
    left.has_left = true;
}

// The rest of the end of an open, after the section.
void forget(server_context& host, open& one, leftover& left) noexcept {
    ENSURE(left.has_left and not one.has_session(),
           "an open leaves its session and its file before the table");
    left.lease.reset();
    // The amount only: requests of other loops may compare its client with theirs.
    (void)one.counted.resize(0);
    host.opens.remove(one);
    (void)left.breaks.send(host);
    if (one.file != nullptr) show_end_of_writes(host, one.shared_from_this());
}

// The open cannot be named any more. `writes_ended`: set when its last write has ended, if there
// are any. `was_created`: the open is undone, and only a file that it has created is removed.
[[nodiscard]] leftover finish(server_context& host, open& one, one_shot_event<nt_status>* writes_ended,
                              std::optional<bool> was_created = std::nullopt) noexcept {
    ENSURE(one.has_ended(), "an open is finished after it has ended");
    const std::shared_ptr<open> holding = one.shared_from_this();
    if (const std::shared_ptr<session> of = one.detach()) of->remove(one.id.volatile_part.value());
    open::disconnect_state lost = one.take_disconnect_state();
    host.later.end(lost.end);
    host.replays.end_eligibility(one);
    if (one.pipe != nullptr) one.pipe->end();
    one.drop_scan();
    leftover left{.file = one.file, .duty = {}, .breaks = {}, .lease = {}, .has_left = one.file == nullptr};
    if (one.file != nullptr) {
        const file_section held(*one.file);
        open_in_file& place = one.in_file(held);
        place.is_ending = true;
        if (place.watch != nullptr) place.watch->end_with_open();
        if (was_created) place.deletes_on_close = *was_created and one.file->opens(held).size() == 1;
        if (place.pending_writes == 0) {
            leave(held, host, one, left);
        } else {
            place.writes_ended = writes_ended;
            one.file->protocol(held).end(place.entry);
            // The reply to a LOGOFF does not wait for the writes.
            if (not place.deletes_on_close) forget_record(held, one);
        }
    }
    if (left.has_left) forget(host, one, left);
    return left;
}

// It has ended in that phase. Returns whether the caller does the rest: if its CREATE is in
// progress, that does.
[[nodiscard]] bool is_to_finish(open& one, open_phase before) noexcept {
    ENSURE(one.has_ended(), "an open is finished after it has ended");
    if (before == open_phase::making)
        if (const std::shared_ptr<session> of = one.detach()) of->remove(one.id.volatile_part.value());
    return before == open_phase::live;
}

nt_status carry_out(server_context& host, const leftover& left) noexcept {
    ENSURE(left.has_left or left.is_nothing(), "the last open to leave removes the file");
    if (not left.has_left or left.is_nothing()) return nt_status::success;
    return carry_out_removal(host, left.file, left.duty, nullptr).value_or(nt_status::success);
}

}  // namespace

nt_status end_open(server_context& host, open& one) noexcept {
    return is_to_finish(one, one.end()) ? finish_end(host, one) : nt_status::file_closed;
}

nt_status finish_end(server_context& host, open& one) noexcept {
    const std::shared_ptr<open> holding = one.shared_from_this();
    return carry_out(host, finish(host, one, nullptr));
}

void end_created_open(server_context& host, open& one, bool was_created) noexcept {
    ENSURE(not was_created or one.file != nullptr, "a file is created, not a pipe");
    const std::shared_ptr<open> holding = one.shared_from_this();
    if (is_to_finish(one, one.end())) (void)carry_out(host, finish(host, one, nullptr, was_created));
}

bool end_open_of(server_context& host, open& one, const session* of) noexcept {
    const std::optional<open_phase> before = one.end_if_of(of);
    if (not before) return false;
    if (is_to_finish(one, *before)) (void)finish_end(host, one);
    return true;
}

io::task<nt_status> co_end_open(request& r, std::shared_ptr<open> one) noexcept {
    if (not is_to_finish(*one, one->end())) co_return nt_status::file_closed;
    one_shot_event<nt_status> gone(r.loop());
    const leftover left = finish(r.host(), *one, &gone);
    if (not left.has_left) co_return co_await within_work(gone.wait());
    if (left.is_nothing()) co_return nt_status::success;
    co_return co_await co_carry_out_removal(r.host(), r.loop(), left.file, left.duty);
}

nt_status refuse_open(const request& r) noexcept {
    ENSURE(r.session != nullptr, "an open is refused to a session");
    r.host().rejections.add(limit::opens_per_session, r.session->admitted.client.name());
    return nt_status::too_many_opened_files;
}

void end_watches_of_removed(const file_section& held, file_state& directory) noexcept {
    ENSURE(directory.is_delete_pending(held),
           "watches end with DELETE_PENDING only at a directory that is pending");
    for (open* const one : directory.opens(held))
        if (notify_watch* const watch = one->in_file(held).watch.get()) watch->end_for_removal();
}

pending_write::pending_write(server_context& host, std::shared_ptr<open> of, shown when) noexcept
    : host_(host) {
    ENSURE(of->file != nullptr and not of->is_directory(), "the data of a file are written");
    decided_breaks breaks;
    {
        const file_section held(*of->file);
        open_in_file& place = of->in_file(held);
        if (place.is_ending) return;
        ++place.pending_writes;
        of->file->begin_write(held);
        end_read_caching(held, host_, *of->file, of.get(), breaks);
    }
    of_ = std::move(of);
    // relaxed: the reply to the write orders it before the CLOSE.
    if (when == shown::at_close and not of_->shows_end.load(std::memory_order_relaxed))
        of_->shows_end.store(true, std::memory_order_relaxed);
    (void)breaks.send(host_);
}

pending_write::~pending_write() {
    if (of_ == nullptr) return;
    leftover left{.file = of_->file, .duty = {}, .breaks = {}, .lease = {}, .has_left = false};
    one_shot_event<nt_status>* waiting = nullptr;
    {
        const file_section held(*of_->file);
        open_in_file& place = of_->in_file(held);
        ENSURE(place.pending_writes != 0, "a write is counted until it ends");
        of_->file->end_write(held);
        if (--place.pending_writes != 0 or not place.is_ending) return;
        waiting = std::exchange(place.writes_ended, nullptr);
        leave(held, host_, *of_, left);
    }
    forget(host_, *of_, left);
    std::optional<nt_status> status = nt_status::success;
    if (not left.is_nothing()) status = carry_out_removal(host_, left.file, left.duty, waiting);
    if (waiting != nullptr and status) waiting->set(*status);
}

}  // namespace sluice::smb::server
