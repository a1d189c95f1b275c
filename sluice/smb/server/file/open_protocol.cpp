#include "sluice/smb/server/file/open_protocol.hpp"

#include <algorithm>

namespace sluice::smb::server {

open_protocol::~open_protocol() {
    ENSURE(entries_.empty() and stream_entries_.empty(), "entries hold their file");
    ENSURE(directory_changes_ == 0 and holder_ == nullptr, "changes of names hold their file");
    ENSURE(marks_ == 0 and checker_ == nullptr, "renames and checks hold their file");
}

bool open_protocol::is_pending() const noexcept {
    return phase_ == delete_phase::delete_pending or phase_ == delete_phase::removing;
}

bool open_protocol::is_joining_any() const noexcept {
    return file_.entries_.count(entry_state::joining) != 0 or
           file_.stream_entries_.count(entry_state::joining) != 0;
}

open_protocol::verdict open_protocol::check(const sharing& wanted) const noexcept {
    ENSURE(phase_ != delete_phase::removed or entries_.empty(), "a removed file has no entries");
    if (phase_ == delete_phase::removed or file_.phase_ == delete_phase::removed) return verdict::gone;
    if (file_.is_pending()) return file_.while_pending();
    if (is_pending()) return while_pending();
    if (is_marked()) return verdict::blocked;
    const share_entries::conflict own = entries_.conflict_with(wanted);
    switch (std::max(own, conflict_beyond(wanted))) {
        case share_entries::conflict::none:
            return verdict::granted;
        case share_entries::conflict::passing:
            return verdict::blocked;
        case share_entries::conflict::committed:
            break;
    }
    return verdict::sharing_violation;
}

// A file takes its streams along when it goes; otherwise streams concern only themselves
// ([MS-FSA] 2.1.5.1.2.1).
share_entries::conflict open_protocol::conflict_beyond(const sharing& wanted) const noexcept {
    if (is_stream()) return file_.conflict_with_stream(wanted);
    const bool deletes = wire::has(needs_of(wanted.access), wire::share_access::remove);
    return deletes ? stream_entries_.denial_of_delete() : share_entries::conflict::none;
}

share_entries::conflict open_protocol::conflict_with_stream(const sharing& wanted) const noexcept {
    ENSURE(not is_stream(), "the opens of a file conflict with those of its streams");
    return denies_delete(wanted) ? entries_.right_to_delete() : share_entries::conflict::none;
}

open_protocol::verdict open_protocol::join(share_entry& fresh, const sharing& wanted,
                                           waiter& blocked) noexcept {
    ENSURE(not fresh.is_inside(), "an entry joins one file");
    const verdict found = check(wanted);
    if (found == verdict::granted) add(fresh, entry_state::joining, wanted);
    if (found == verdict::blocked) file_.joins_.add(blocked);
    return found;
}

void open_protocol::commit(share_entry& joined, const sharing& mode) noexcept {
    ENSURE(joined.at_ == this and joined.state_ == entry_state::joining, "a joining entry is committed");
    remove(joined);
    add(joined, entry_state::committed, mode);
    file_.grant_next();
    file_.wake_joins();
}

void open_protocol::end(share_entry& committed) noexcept {
    ENSURE(committed.at_ == this and committed.state_ == entry_state::committed, "an open ends once");
    const sharing mode = committed.mode_;
    remove(committed);
    add(committed, entry_state::ended, mode);
}

open_protocol::removal_duty open_protocol::leave(share_entry& leaving) noexcept {
    if (not leaving.is_inside()) return {};
    ENSURE(leaving.at_ == this, "an entry leaves its own file");
    ENSURE(phase_ != delete_phase::removing, "a file is removed after its last entry has left");
    remove(leaving);
    const removal_duty duty = duty_of_last();
    file_.grant_next();
    file_.wake_joins();
    return duty;
}

open_protocol::removal_duty open_protocol::leave_created(share_entry& leaving) noexcept {
    const std::uint32_t joining = entries_.count(entry_state::joining);
    const std::uint32_t committed = entries_.count(entry_state::committed);
    const bool is_alone = joining + committed + entries_.count(entry_state::ended) == 1;
    ENSURE(not leaving.is_inside() or leaving.state_ == entry_state::joining,
           "a CREATE that fails is still joining");
    if (leaving.is_inside() and is_alone and phase_ == delete_phase::open) {
        is_undone_ = true;
        set_phase(delete_phase::delete_pending);
    }
    return leave(leaving);
}

// Only leave() asks: so the last entry has the duty, once.
open_protocol::removal_duty open_protocol::duty_of_last() const noexcept {
    removal_duty duty;
    if (not entries_.empty()) return duty;
    const bool has_streams = not stream_entries_.empty();
    duty.of_this = phase_ == delete_phase::delete_pending and not has_streams;
    if (not is_stream()) return duty;
    duty.of_file = file_.phase_ == delete_phase::delete_pending and file_.entries_.empty() and
                   file_.stream_entries_.empty();
    return duty;
}

void open_protocol::set_delete_pending() noexcept {
    ENSURE(not entries_.empty(), "an open deletes the file");
    if (phase_ == delete_phase::open or phase_ == delete_phase::checking)
        set_phase(delete_phase::delete_pending);
}

void open_protocol::clear_delete_pending() noexcept {
    if (phase_ == delete_phase::delete_pending and not entries_.empty()) set_phase(delete_phase::open);
}

bool open_protocol::begin_removal(name_right& right) noexcept {
    ENSURE(entries_.empty() and phase_ != delete_phase::removing, "the last entry removes the file");
    return file_.queue(right, *this, true);
}

void open_protocol::end_removal(name_right& right, bool is_removed) noexcept {
    if (right.at_ == nullptr) return;
    ENSURE(right.at_ == this and right.removes_, "a removal ends at its file");
    const bool was_called = right.is_held_ and phase_ == delete_phase::removing;
    if (was_called) set_phase(is_removed ? delete_phase::removed : delete_phase::open);
    if (is_undone_ and is_pending()) set_phase(delete_phase::open);  // its waiters go on
    ENSURE(phase_ != delete_phase::removing, "one removal of a file is in progress at a time");
    file_.release(right);
}

bool open_protocol::mark(name_right& right) noexcept {
    ++file_.marks_;
    ++file_.marks_so_far_;
    return file_.queue(right, *this, false);
}

bool open_protocol::unmark(name_right& right, bool was_replaced) noexcept {
    if (right.at_ == nullptr) return false;
    ENSURE(right.at_ == this and not right.removes_, "a mark is released at its file");
    const bool has_entries = not entries_.empty() or not stream_entries_.empty();
    const bool is_removed = was_replaced and not has_entries;
    ENSURE(right.is_held_ or not was_replaced, "a rename holds its marks");
    if (is_removed) set_phase(delete_phase::removed);
    file_.was_replaced_ |= was_replaced;
    ENSURE(file_.marks_ != 0, "a mark is counted until it is released");
    --file_.marks_;
    file_.release(right);
    return is_removed;
}

bool open_protocol::queue(name_right& right, open_protocol& of, bool removes) noexcept {
    ENSURE(right.at_ == nullptr, "a right is in one queue");
    ENSURE(not is_stream() and &of.file_ == this, "rights to a file and its streams are queued at the file");
    right.at_ = &of;
    right.removes_ = removes;
    rights_.push_back(right);
    grant_next();
    return right.is_held_;
}

void open_protocol::release(name_right& right) noexcept {
    ENSURE(right.is_held_ == (holder_ == &right), "the holder of a right is the one that knows it");
    if (right.is_held_)
        holder_ = nullptr;
    else
        rights_.erase(right);
    right.at_ = nullptr;
    right.is_held_ = false;
    grant_next();
    wake_joins();
}

// A removal waits for no joining entry: none can join its file or stream, and other
// streams do not matter.
void open_protocol::grant_next() noexcept {
    name_right* const next = rights_.front();
    if (next == nullptr or holder_ != nullptr) return;
    if (not next->removes_ and is_joining_any()) return;
    ENSURE(not next->is_held_ and &next->at_->file_ == this, "a queued right is to this file, and not held");
    rights_.erase(*next);
    holder_ = next;
    next->is_held_ = true;
    open_protocol& of = *next->at_;
    if (next->removes_ and of.phase_ == delete_phase::delete_pending) of.set_phase(delete_phase::removing);
    next->woken_.set(wire::nt_status::success);
}

open_protocol::verdict open_protocol::begin_directory_change(waiter& blocked) noexcept {
    ENSURE(not is_stream(), "a stream is not a directory");
    if (phase_ == delete_phase::removed) return verdict::gone;
    verdict found = is_pending() ? while_pending() : verdict::granted;
    if (phase_ == delete_phase::checking) found = verdict::blocked;
    if (found == verdict::blocked) directory_waiters_.add(blocked);
    if (found == verdict::granted) ++directory_changes_;
    return found;
}

void open_protocol::end_directory_change() noexcept {
    ENSURE(directory_changes_ != 0, "a directory change ends once");
    if (--directory_changes_ == 0) directory_waiters_.wake_all();
}

open_protocol::verdict open_protocol::begin_check(directory_check& check, waiter& blocked) noexcept {
    ENSURE(not is_stream() and not entries_.empty(), "an open deletes a directory");
    if (is_pending()) return verdict::delete_pending;
    if (phase_ == delete_phase::open) {
        ENSURE(check.at_ == nullptr or check.at_ == this, "a check has one directory");
        check.at_ = this;
        checker_ = &check;
        set_phase(delete_phase::checking);
    }
    ENSURE(phase_ == delete_phase::checking, "a directory with an open is not being removed");
    if (checker_ == &check and directory_changes_ == 0) return verdict::granted;
    directory_waiters_.add(blocked);
    return verdict::blocked;
}

bool open_protocol::end_check(directory_check& check, bool is_empty) noexcept {
    ENSURE(check.at_ == nullptr or check.at_ == this, "a check ends at its directory");
    if (std::exchange(check.at_, nullptr) == nullptr or checker_ != &check) return false;
    set_phase(is_empty ? delete_phase::delete_pending : delete_phase::open);
    return true;
}

void open_protocol::add(share_entry& entry, entry_state state, const sharing& mode) noexcept {
    ENSURE(phase_ != delete_phase::removing and phase_ != delete_phase::removed,
           "a file with an entry is not removed");
    entry.at_ = this;
    entry.state_ = state;
    entry.mode_ = mode;
    entries_.add(state, mode);
    if (is_stream()) file_.stream_entries_.add(state, mode);
}

void open_protocol::remove(share_entry& entry) noexcept {
    ENSURE(not is_stream() or file_.stream_entries_.count(entry.state_) >= entries_.count(entry.state_),
           "the entries of a stream count in its file");
    entries_.remove(entry.state_, entry.mode_);
    if (is_stream()) file_.stream_entries_.remove(entry.state_, entry.mode_);
    entry.at_ = nullptr;
}

void open_protocol::set_phase(delete_phase next) noexcept {
    ENSURE(phase_ != delete_phase::removed, "a removed file stays removed");
    phase_ = next;
    if (next != delete_phase::checking) checker_ = nullptr;
    ENSURE((checker_ != nullptr) == (next == delete_phase::checking),
           "a directory has a checker while it is checked");
    if (not is_pending()) is_undone_ = false;
    file_.wake_joins();
    file_.directory_waiters_.wake_all();
}

// While the file is marked, a woken join would be blocked again.
void open_protocol::wake_joins() noexcept {
    if (marks_ == 0) joins_.wake_all();
}

}  // namespace sluice::smb::server
