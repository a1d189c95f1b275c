#include "sluice/smb/server/operation/open_closer.hpp"

#include <algorithm>

#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/caching.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// Removes every name whose removal an open has requested. The key of the file may be another file's as soon
// as it is gone.
[[nodiscard]] nt_status remove_by(server_context& host, const std::vector<std::shared_ptr<open>>& removers) {
    nt_status status = nt_status::success;
    for (const std::shared_ptr<open>& by : removers) {
        host.files.forget(*by->file);
        const result<void> removed = by->node->remove();
        // Another may have removed the same name.
        const bool is_gone = not removed and removed.error() == std::errc::no_such_file_or_directory;
        if (not removed and not(is_gone and by != removers.front())) status = status_of(removed.error());
    }
    return status;
}

// The file stays while other servers have it open; this checks again until they have closed it. It holds the
// opens for their nodes, and with them the file's state, which refuses new opens here and in other servers. A
// server that stops leaves the file.
io::task<void> remove_when_alone(server_context& host, std::vector<std::shared_ptr<open>> removers) noexcept {
    const std::shared_ptr<file_state> file = removers.front()->file;
    for (std::chrono::milliseconds pause = limits::peer_pause_min;;
         pause = std::min(2 * pause, limits::peer_pause_max)) {
        const deadline until(pause);
        io::task<bool> waiting = pass(host.loop(), until);
        const bool has_slept = co_await unlatched(host.latch(), std::move(waiting));
        const peer_seal alone(file->peers()->file());
        if (has_slept and not alone) continue;
        (void)remove_by(host, removers);
        co_return;
    }
}

[[nodiscard]] nt_status remove(server_context& host, file_state& file) {
    std::vector<std::shared_ptr<open>> removers = file.take_removers();
    std::optional<peer_seal> alone;
    if (peer_signs* const peers = file.peers()) {
        if (not alone.emplace(peers->file())) {
            host.background.spawn(remove_when_alone(host, std::move(removers)));
            return nt_status::success;
        }
    }
    return remove_by(host, removers);
}

// The last open of a file takes it along, if it was to be removed; but not before the streams of it that are
// still open ([MS-FSA] 2.1.5.5).
[[nodiscard]] nt_status remove_if_last(server_context& host, open& one) noexcept {
    file_state& file = *one.file;
    if (not file.opens().empty() or not file.is_delete_pending()) return nt_status::success;
    if (file.key().stream == 0 and host.files.has_open_streams(file.key())) {
        file.waits_for_streams = true;
        return nt_status::success;
    }
    return remove(host, file);
}

// The last stream of a file that waited for it. Whoever removed the file has had the answer.
void remove_base_if_last(server_context& host, const open& one) noexcept {
    const std::shared_ptr<file_state> base = one.file->base;
    if (base == nullptr or host.files.has_open_streams(base->key())) return;
    if (std::exchange(base->waits_for_streams, false)) (void)remove(host, *base);
}

// What others see of an open that has ended, or learn its end by.
nt_status let_go(server_context& host, open& one) noexcept {
    nt_status status = nt_status::success;
    if (one.file != nullptr) {
        one.file->locks().release_all(one);
        one.counted_locks.reset();
        one.leave_file();
        if (one.deletes_on_close) {
            one.file->set_delete_pending(host.opens.find(one.id));
            end_handle_caching(host, *one.file, &one);
            end_watches_of_removed(*one.file);
        }
        end_caching(host, one);
        one.claim.give_up();
        one.claim_to_base.give_up();
        status = remove_if_last(host, one);
        remove_base_if_last(host, one);
    }
    one.counted_kept.reset();
    one.counted.reset();
    host.opens.remove(one);  // perhaps the last to hold it: nothing of it is touched after
    return status;
}

}  // namespace

nt_status end_open(server_context& host, open& one) noexcept {
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
    return one.pending_writes == 0 ? let_go(host, one) : nt_status::success;
}

io::task<nt_status> co_end_open(request& r, open& one) noexcept {
    event<nt_status> gone(r.loop());
    const bool has_to_wait = one.pending_writes != 0;
    if (has_to_wait) one.told_of_end = &gone;
    const nt_status status = end_open(r.host(), one);
    if (not has_to_wait) co_return status;
    co_return co_await unlatched(r.host().latch(), gone.wait());
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
    if (--of_->pending_writes != 0 or not of_->is_closed) return;
    event<nt_status>* const waiting = of_->told_of_end;
    const nt_status status = let_go(host_, *of_);
    if (waiting != nullptr) waiting->set(status);
}

}  // namespace sluice::smb::server
