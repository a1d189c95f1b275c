#include "sluice/smb/server/operation/open_closer.hpp"

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"
#include "sluice/smb/server/operation/create_round.hpp"
#include "sluice/smb/server/operation/file_removal.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// The removals that the end of an open leaves to its caller.
struct leftover {
    std::shared_ptr<file_state> file;
    open_protocol::removal_duty duty;

    [[nodiscard]] bool is_nothing() const noexcept { return not duty.of_this and not duty.of_file; }
};

// Gives up everything of an ended open that others see.
[[nodiscard]] leftover let_go(server_context& host, open& one) noexcept {
    ENSURE(one.is_closed and one.session == nullptr, "an open has ended before others see that it has");
    ENSURE(one.pending_writes == 0, "an open keeps its place in the file until its last write has ended");
    leftover left;
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
        one.claim.cancel();
        one.claim_to_base.cancel();
        left = {.file = file, .duty = file->protocol().leave(one.entry)};
    }
    one.counted_kept.reset();
    one.counted.reset();
    host.opens.remove(one);  // perhaps the last to hold it: nothing of it is touched after
    return left;
}

// The open, which has not ended, cannot be named any more. Returns nothing while writes through it are in
// progress: the last of them does the rest.
[[nodiscard]] std::optional<leftover> begin_end(server_context& host, open& one) noexcept {
    ENSURE(host.latch().is_mine());
    ENSURE(not one.is_closed, "an open ends once");
    one.is_closed = true;
    if (session* const of = std::exchange(one.session, nullptr))
        ENSURE(of->opens.erase(one.id.volatile_part.value()) == 1, "an open is in the table of its session");
    if (one.durable) host.later.end(one.durable->end);
    host.replays.end_eligibility(one);
    if (one.pipe != nullptr) one.pipe->end();
    end_watch(one);
    one.scan.reset();
    if (one.pending_writes == 0) return let_go(host, one);
    one.file->protocol().end(one.entry);
    return std::nullopt;
}

}  // namespace

nt_status end_open(server_context& host, open& one) noexcept {
    if (one.is_closed) return nt_status::file_closed;
    const std::optional<leftover> left = begin_end(host, one);
    if (not left or left->is_nothing()) return nt_status::success;
    return carry_out_removal(host, left->file, left->duty, nullptr).value_or(nt_status::success);
}

io::task<nt_status> co_end_open(request& r, std::shared_ptr<open> one) noexcept {
    if (one->is_closed) co_return nt_status::file_closed;
    ENSURE(one->told_of_end == nullptr, "one request closes an open");
    event<nt_status> gone(r.loop());
    one->told_of_end = &gone;
    const std::optional<leftover> left = begin_end(r.host(), *one);
    if (not left) co_return co_await unlatched(r.host().latch(), gone.wait());
    one->told_of_end = nullptr;
    if (left->is_nothing()) co_return nt_status::success;
    co_return co_await co_carry_out_removal(r.host(), r.loop(), left->file, left->duty);
}

// The end of a watch calls the file system.
void end_watch(open& of) noexcept {
    if (of.watch == nullptr) return;
    of.watch->end_with_open();
    of.node->domain().discard(std::move(of.watch), of.tree, vfs::waits_for_calls::yes);
}

void end_watches_of_removed(file_state& directory) noexcept {
    ENSURE(directory.is_delete_pending(),
           "watches end with DELETE_PENDING only at a directory that is pending");
    for (open* const one : directory.opens())
        if (one->watch != nullptr) one->watch->end_for_removal();
}

pending_write::pending_write(server_context& host, std::shared_ptr<open> of) noexcept
    : host_(host), of_(std::move(of)) {
    ENSURE(host_.latch().is_mine(), "a write begins under the latch");
    ENSURE(not of_->is_closed, "a write begins before its open ends");
    ++of_->pending_writes;
    of_->file->begin_write();
    end_read_caching(host_, *of_->file, of_.get());
}

pending_write::~pending_write() {
    ENSURE(host_.latch().is_mine(), "a write ends under the latch");
    ENSURE(of_->pending_writes != 0, "a write is counted until it ends");
    of_->file->end_write();
    if (--of_->pending_writes != 0 or not of_->is_closed) return;
    event<nt_status>* const waiting = of_->told_of_end;
    const leftover left = let_go(host_, *of_);
    std::optional<nt_status> status = nt_status::success;
    if (not left.is_nothing()) status = carry_out_removal(host_, left.file, left.duty, waiting);
    if (waiting != nullptr and status) waiting->set(*status);
}

}  // namespace sluice::smb::server
