#include "sluice/smb/server/operation/open_closer.hpp"

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/file_removal.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// Gives up everything of an ended open that others see. Returns nothing while its removal of the file is in
// progress: told_of_end will be set.
std::optional<nt_status> let_go(server_context& host, open& one) noexcept {
    std::optional<nt_status> status = nt_status::success;
    if (one.file != nullptr) {
        const std::shared_ptr<file_state> file = one.file;
        file->locks().release_all(one);
        one.counted_locks.reset();
        one.leave_file();
        if (one.deletes_on_close) {
            file->set_delete_pending(host.opens.find(one.id));
            end_handle_caching(host, *file, &one);
            end_watches_of_removed(*file);
        }
        end_caching(host, one);
        one.claim.give_up();
        one.claim_to_base.give_up();
        status = carry_out_removal(host, file, file->protocol().leave(one.entry), one.told_of_end);
    }
    one.counted_kept.reset();
    one.counted.reset();
    host.opens.remove(one);  // perhaps the last to hold it: nothing of it is touched after
    return status;
}

// The open cannot be named any more. Returns nothing if told_of_end will be set.
std::optional<nt_status> begin_end(server_context& host, open& one) noexcept {
    ENSURE(host.latch().is_mine());
    if (one.is_closed) return nt_status::file_closed;
    one.is_closed = true;
    if (session* const of = std::exchange(one.session, nullptr))
        of->opens.erase(one.id.volatile_part.value());
    if (one.durable and one.durable->end) host.later.cancel(*std::exchange(one.durable->end, std::nullopt));
    host.replays.end_eligibility(one);
    if (one.pipe != nullptr) one.pipe->end();
    one.watch.reset();
    one.scan.reset();
    if (one.pending_writes == 0) return let_go(host, one);
    one.file->protocol().end(one.entry);
    return std::nullopt;
}

}  // namespace

nt_status end_open(server_context& host, open& one) noexcept {
    return begin_end(host, one).value_or(nt_status::success);
}

io::task<nt_status> co_end_open(request& r, open& one) noexcept {
    event<nt_status> gone(r.loop());
    const bool is_first = not one.is_closed;
    if (is_first) one.told_of_end = &gone;
    const std::optional<nt_status> status = begin_end(r.host(), one);
    if (not status) co_return co_await unlatched(r.host().latch(), gone.wait());
    if (is_first) one.told_of_end = nullptr;
    co_return *status;
}

void end_watches_of_removed(file_state& directory) noexcept {
    for (open* const one : directory.opens())
        if (one->watch != nullptr) one->watch->end_for_removal();
}

pending_write::pending_write(server_context& host, std::shared_ptr<open> of) noexcept
    : host_(host), of_(std::move(of)) {
    ENSURE(host_.latch().is_mine());
    ++of_->pending_writes;
    ++of_->file->pending_writes;
    end_read_caching(host_, *of_->file, of_.get());
}

pending_write::~pending_write() {
    ENSURE(host_.latch().is_mine());
    --of_->file->pending_writes;
    ++of_->file->ended_writes;
    if (--of_->pending_writes != 0 or not of_->is_closed) return;
    event<nt_status>* const waiting = of_->told_of_end;
    const std::optional<nt_status> status = let_go(host_, *of_);
    if (waiting != nullptr and status) waiting->set(*status);
}

}  // namespace sluice::smb::server
