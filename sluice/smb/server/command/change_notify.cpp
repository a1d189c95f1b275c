#include "sluice/smb/wire/file/change_notify.hpp"

#include <algorithm>

#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/file/output_body.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

[[nodiscard]] nt_status check(const request& r, const open& of,
                              const wire::change_notify_args& args) noexcept {
    const bool is_large = wire::has(r.connection().agreed.capabilities, wire::capabilities::large_mtu);
    const std::uint32_t bytes_max =
        is_large ? limits::transfer_bytes_max : limits::transfer_bytes_max_single_credit;
    if (args.output_bytes_max > bytes_max or not r.charge_covers(args.output_bytes_max))
        return nt_status::invalid_parameter;
    if (not of.is_directory()) return nt_status::invalid_parameter;
    if (not of.grants(wire::access_mask::list_directory)) return nt_status::access_denied;
    return nt_status::success;
}

// After a suspension: the open may have ended, or gone to another session.
[[nodiscard]] nt_status check_again(const request& r, const open& of) noexcept {
    return of.is_live() and of.is_of(*r.session) ? nt_status::success : nt_status::notify_cleanup;
}

// The watch lives as long as the open.
[[nodiscard]] notify_watch* watch_of(open& of) noexcept {
    const file_section held(*of.file);
    return of.in_file(held).watch.get();
}

// Gives the open its watch. In one section, because an open that ends, or a directory that will be
// removed, ends the watch that it finds.
[[nodiscard]] nt_status keep_watch(open& of, std::unique_ptr<notify_watch>& watch) noexcept {
    const file_section held(*of.file);
    open_in_file& place = of.in_file(held);
    ENSURE(place.watch == nullptr, "one request begins the watch of an open");
    if (place.is_ending) return nt_status::notify_cleanup;
    if (of.file->is_delete_pending(held)) return nt_status::delete_pending;
    place.watch = std::move(watch);
    return nt_status::success;
}

using begun_watch = std::expected<std::unique_ptr<notify_watch>, nt_status>;

// Touches the directory and its volume.
[[nodiscard]] begun_watch start_watch(vfs::change_feed& feed, vfs::node& directory,
                                      const notify_watch::interest& wanted, notify_watch::counted counted) {
    auto watch = notify_watch::begin(feed, directory, wanted, std::move(counted));
    if (watch) return *std::move(watch);
    const bool are_too_many = watch.error() == std::errc::no_space_on_device;
    return std::unexpected(are_too_many ? nt_status::insufficient_resources : status_of(watch.error()));
}

[[nodiscard]] io::task<nt_status> begin_watch(request& r, std::shared_ptr<open> of,
                                              const wire::change_notify_args& args) {
    vfs::change_feed* const feed = r.files().volume().changes();
    if (feed == nullptr or of->is_past()) co_return nt_status::not_supported;
    const notify_watch::interest wanted{
        .filter = args.filter,
        .recursive = wire::has(args.flags, wire::change_notify_flags::watch_tree),
        .bytes_max = args.output_bytes_max};
    const client_reference& by = r.session->admitted.client;
    client_quotas& quotas = r.host().quotas;
    notify_watch::counted counted{.directories = quotas.take(by, limit::watches),
                                  .change_bytes = quotas.take(by, limit::queued_change_bytes, 0)};
    if (counted.directories.amount() == 0) co_return nt_status::insufficient_resources;
    vfs::fs_domain& domain = of->node->domain();
    begun_watch watch = co_await r.call(
        domain, [&] { return start_watch(*feed, *of->node, wanted, std::move(counted)); },
        vfs::waits_for_calls::yes);
    if (not watch) co_return watch.error();
    const nt_status refused = keep_watch(*of, *watch);
    if (refused != nt_status::success)
        domain.discard(*std::move(watch), of->through, vfs::waits_for_calls::yes);
    co_return refused;
}

// Requests of one open that come before there is a watch begin it in turn: the first one
// decides what is watched. Changes are collected from then on, also if that request is cancelled
// ([MS-FSA] 2.1.5.11, 2.1.5.20), so a CANCEL takes effect once there is a watch.
[[nodiscard]] io::task<nt_status> find_watch(request& r, std::shared_ptr<open> of,
                                             const wire::change_notify_args& args) {
    ENSURE(of->file != nullptr and of->is_directory(), "a directory is watched");
    if (watch_of(*of) != nullptr) co_return nt_status::success;
    const cancel_deferral until_watched(r);
    change_turn turn(r, of->watch_begins);
    if (not turn.is_taken()) {
        const nt_status refused = co_await turn.wait();
        if (refused != nt_status::success) co_return refused;
    }
    if (const nt_status refused = check_again(r, *of); refused != nt_status::success) co_return refused;
    co_return watch_of(*of) != nullptr ? nt_status::success : co_await begin_watch(r, of, args);
}

[[nodiscard]] nt_status reply_with_changes(request& r, notify_watch& watch, std::uint32_t bytes_max) {
    pool_buffer room = r.answer.buffers().take(std::min(bytes_max, watch.bytes_max()));
    if (not room) return nt_status::insufficient_resources;
    wire::notify_writer list(room.bytes());
    const nt_status status = watch.take(list);
    if (status != nt_status::success) return status;
    byte_writer* const body = r.begin_reply(sizeof(wire::output_body));
    if (body == nullptr) return nt_status::insufficient_resources;
    const std::size_t bytes = list.bytes().size();
    wire::encode_output_body_head(*body, bytes);
    room.shrink(bytes);
    r.answer.attach(std::move(room));
    return nt_status::success;
}

// Without changes, a reply with NOTIFY_CLEANUP or NOTIFY_ENUM_DIR, which are not errors, still has
// the body of CHANGE_NOTIFY ([MS-SMB2] 2.2.2, 2.2.36). StructureSize counts one byte of the buffer,
// which an empty buffer has as well.
void reply_without_changes(request& r) noexcept {
    byte_writer* const body = r.begin_reply(sizeof(wire::output_body) + 1);
    if (body == nullptr) return;
    wire::encode_output_body_head(*body, 0);
    body->put_zeros(1);
}

[[nodiscard]] io::task<nt_status> wait_for_changes(request& r, const wire::change_notify_args& args) {
    const std::shared_ptr<open> of = r.find_open(args.file);
    if (of == nullptr) co_return nt_status::file_closed;
    if (const nt_status refused = check(r, *of, args); refused != nt_status::success) co_return refused;
    if (of->file->is_delete_pending()) co_return nt_status::delete_pending;
    io::task<nt_status> finding = find_watch(r, of, args);
    if (const nt_status refused = co_await std::move(finding); refused != nt_status::success)
        co_return refused;
    notify_watch& watch = *watch_of(*of);
    one_shot_event<nt_status> notified(r.loop());
    watch.wait(notified);
    io::task<nt_status> waiting = r.pend(notified);
    const nt_status outcome = co_await std::move(waiting);
    // However the open ended, by CLOSE or with its session or tree, nothing comes any more.
    nt_status status = check_again(r, *of);
    if (status == nt_status::success)
        status =
            outcome == nt_status::success ? reply_with_changes(r, watch, args.output_bytes_max) : outcome;
    watch.forget(notified);
    co_return status;
}

}  // namespace

io::task<nt_status> serve_change_notify(request& r) {
    const auto args = wire::decode_change_notify(r.message());
    if (not args) co_return nt_status::invalid_parameter;
    io::task<nt_status> waiting = wait_for_changes(r, *args);
    const nt_status status = co_await std::move(waiting);
    if (status == nt_status::notify_cleanup or status == nt_status::notify_enum_dir) reply_without_changes(r);
    co_return status;
}

}  // namespace sluice::smb::server
