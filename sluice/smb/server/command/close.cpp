#include "sluice/smb/wire/file/close.hpp"

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/own_change.hpp"
#include "sluice/smb/server/net/pipe_turn.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// A removed file has no status that a client could use, and asking for it takes two system calls.
[[nodiscard]] bool is_removed(file_state& file) noexcept {
    const file_section held(file);
    return file.protocol(held).phase() == delete_phase::removed;
}

// A change time that the open keeps stays with the file, unless something has changed the file
// since. One that is shown until another open ends, which has renamed the file, is not its own.
[[nodiscard]] io::task<void> store_kept_change_time(request& r, const open& one) noexcept {
    const auto time = one.file->shown_change_time();
    if (not time or time->until_end_of != nullptr) co_return;
    if (not one.through->volume().features().has_exact_times) co_return;
    own_change seen(r.host());
    const auto store = [&] {
        seen.begin(*one.node, one.shows_end.load(std::memory_order_relaxed));
        const result<vfs::metadata> status = one.node->status();
        if (status and status->changed == time->of_host) (void)one.node->change({.changed = time->shown});
        seen.end(one.node.get());
        return nt_status::success;
    };
    (void)co_await call_in_turn(r, one, store);
    seen.break_leases(one);
}

// The end of an open that has written is a change of its directory ([MS-FSA] 2.1.5.5).
[[nodiscard]] io::task<nt_status> end_and_show(request& r, std::shared_ptr<open> one) noexcept {
    const bool is_seen = r.host().directories.has_any() and one->file != nullptr and
                         one->shows_end.load(std::memory_order_relaxed);
    if (not is_seen) {
        io::task<nt_status> ending = co_end_open(r, one);
        co_return co_await std::move(ending);
    }
    own_change seen(r.host());
    vfs::fs_domain& domain = one->node->domain();
    // Not calls that a CANCEL cancels. The open is a writer until the change has begun, so that no
    // event of its writes is taken for another program's.
    (void)co_await within_work(domain.run(r.loop(), [&] {
        seen.begin(*one->node, true);
        one->shows_end.store(false, std::memory_order_relaxed);
        return true;
    }));
    io::task<nt_status> ending = co_end_open(r, one);
    const nt_status status = co_await std::move(ending);
    (void)co_await within_work(domain.run(r.loop(), [&] {
        seen.end(one->node.get());
        return true;
    }));
    seen.break_leases(*one);
    co_return status;
}

}  // namespace

io::task<nt_status> serve_close(request& r) {
    const auto args = wire::decode_close(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    const std::shared_ptr<open> one = r.find_open(args->file);
    if (one == nullptr) co_return nt_status::file_closed;

    if (one->is_pipe()) {
        // Also an interrupt lets the pipe end, as the client wants.
        io::task<nt_status> earlier = finish_earlier(r, *one->pipe);
        (void)co_await std::move(earlier);
    }
    if (one->kept().changed) {
        io::task<void> storing = store_kept_change_time(r, *one);
        co_await std::move(storing);
    }
    wire::close_reply reply;
    io::task<nt_status> ending = end_and_show(r, one);
    const nt_status status = co_await std::move(ending);
    ENSURE(one->has_ended(), "an open has ended when its CLOSE is answered");
    if (status != nt_status::success) co_return status;
    if (wire::has(args->flags, wire::close_flags::query_attributes) and one->node != nullptr and
        not is_removed(*one->file)) {
        // The node is still held.
        if (auto last = co_await r.call(*one, [&] { return asked_status(*one->node); })) {
            one->file->show_change_time(*last);
            reply.flags = wire::close_flags::query_attributes;
            reply.information = open_information_of(*last);
        }
    }
    byte_writer* const body = r.begin_reply(64);
    if (body == nullptr) co_return nt_status::insufficient_resources;
    encode(*body, reply);
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
