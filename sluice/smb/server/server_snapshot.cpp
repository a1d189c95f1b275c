// The state of a server as plain values.

#include "sluice/smb/server/report/snapshot.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sluice/smb/server/core/cross_loop_post.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/wire/fsctl/fsctl_snapshots.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

namespace {

[[nodiscard]] const char* name_of(session::phase which) noexcept {
    switch (which) {
        case session::phase::in_progress:
            return "in_progress";
        case session::phase::valid:
            return "valid";
        case session::phase::expired:
            return "expired";
        case session::phase::gone:
            return "gone";
    }
    return "";
}

[[nodiscard]] std::string text_of(const wire::guid& client) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const std::byte one : client.bytes) {
        text += digits[std::to_integer<unsigned>(one) >> 4];
        text += digits[std::to_integer<unsigned>(one) & 15];
    }
    return text;
}

[[nodiscard]] session_status status_of(const session& one) {
    const session::phase now = one.state();
    session_status status;
    status.id = one.id;
    status.state = name_of(now);
    status.since = one.since;
    status.client = text_of(one.agreed.client);
    status.opens = one.in_use().opens;
    // While it is in progress, its connection sets these.
    if (now == session::phase::valid or now == session::phase::expired) {
        status.user = one.user.name;
        status.domain = one.user.domain;
        status.is_guest = one.user.is_guest;
        status.is_anonymous = one.user.is_anonymous;
        status.has_keys = one.signing_key.has_value();
        status.requires_encryption = one.requires_encryption;
    }
    for (const std::shared_ptr<tree>& each : one.trees())
        status.shares.push_back(each->target->configuration().name);
    return status;
}

struct session_and_channels {
    std::shared_ptr<session> one;
    std::vector<std::shared_ptr<channel>> channels;  // in the order they came
};

// In one pass under the mutex of the registry of connections, in which a connection exists.
void add_sessions(std::vector<session_status>& to, const connection_registry& connections,
                  const std::vector<session_and_channels>& all) {
    std::unordered_map<const connection_handle*, std::optional<channel_status>> by_handle;
    for (const session_and_channels& each : all)
        for (const std::shared_ptr<channel>& way : each.channels)
            if (way->is_established()) by_handle.try_emplace(way->connection.get());
    (void)connections.read_each([&](const connection& client) {
        const auto found = by_handle.find(client.admitted.handle.get());
        if (found != by_handle.end()) found->second = client.status();
    });
    for (const session_and_channels& each : all) {
        session_status& status = to.emplace_back(status_of(*each.one));
        for (const std::shared_ptr<channel>& way : each.channels) {
            const auto found = by_handle.find(way->connection.get());
            if (found != by_handle.end() and found->second) status.channels.push_back(*found->second);
        }
    }
}

void add_caching(open_status& status, const open_in_file& of) noexcept {
    if (of.lease == nullptr) return;
    status.caching = of.lease->is_oplock() ? caching_kind::oplock : caching_kind::lease;
    status.cached = of.lease->held();
    status.is_breaking = of.lease->is_breaking();
}

void add_file(open_status& status, const open& one, bool has_names) {
    const file_section held(*one.file);
    const open_in_file& place = one.in_file(held);
    add_caching(status, place);
    status.deletes_on_close = place.deletes_on_close;
    status.locks = one.file->locks(held).held_by(one);
    ENSURE(place.entry.is_inside() or status.locks == 0,
           "locks end with the place of their open in the file");
    if (place.watch != nullptr) status.kept_changes = place.watch->kept_changes();
    if (has_names and status.locks != 0)
        status.first_locks = one.file->locks(held).first_of(one, open_locks_shown_max);
}

// The path of a previous version, as clients write it.
[[nodiscard]] std::string path_of(const open& one) {
    std::string path = one.node->path();
    if (not one.is_past()) return path;
    ENSURE(one.past->past_time.has_value(), "a tree of the past has a time");
    return vfs::join_path(wire::gmt_token_of(*one.past->past_time), path);
}

// Returns the status of an open that was live a moment ago.
[[nodiscard]] open_status status_of(const open& one, bool has_names) {
    ENSURE(one.phase() != open_phase::making, "an open that is being made belongs to its CREATE");
    open_status status;
    status.number = one.id.persistent_part.value();
    if (const std::shared_ptr<session> of = one.session()) status.session = of->id;
    status.is_directory = one.is_directory();
    status.is_pipe = one.is_pipe();
    status.is_durable = one.is_durable();
    status.access = static_cast<std::uint32_t>(one.access);
    status.share_access = static_cast<std::uint32_t>(one.share_access);
    if (one.file != nullptr) add_file(status, one, has_names);
    if (not has_names) return status;
    status.share = one.through->configuration().name;
    if (one.node != nullptr) {
        status.path = path_of(one);
        status.stream = one.node->stream_name();
    }
    return status;
}

}  // namespace

limits_in_use smb_server::in_use() const noexcept {
    limits_in_use sum;
    (void)context_.connections.read_each([&](const connection& client) { client.add_to(sum); });
    for (const std::shared_ptr<session>& one : context_.sessions.all()) {
        const session::counts now = one->in_use();
        sum.merge({.channels_of_session = now.channels,
                   .trees_of_session = now.trees,
                   .opens_of_session = now.opens});
    }
    sum.connections = context_.connections.size();
    sum.connections_without_session = context_.admission.connections_without_session();
    sum.connections_without_session_bound = context_.admission.bounds().connections_without_session;
    sum.sessions = context_.sessions.size();
    sum.sessions_in_progress = context_.admission.sessions_in_progress();
    sum.opens = context_.opens.size();
    sum.logon_waiters = context_.logons.waiting();
    sum.buffer_bytes_bound = context_.admission.bounds().buffer_bytes;
    for (const auto& each : context_.loops())
        sum.buffer_bytes += each->buffers.taken_bytes();
    for (std::size_t i = 0; i != shared_limits_count; ++i) {
        const auto which = static_cast<limit>(i);
        sum.shared[i] = {.bound = context_.quotas.bound_of(which),
                         .in_use = context_.quotas.in_use(which),
                         .of_client = context_.quotas.most_of_client(which)};
    }
    for (std::size_t i = 0; i != limits_count; ++i)
        sum.rejections[i] = context_.rejections.of(static_cast<limit>(i));
    return sum;
}

void smb_server::add_shares_to(server_snapshot& into) const {
    std::unordered_map<const share*, std::size_t> trees;
    for (const std::shared_ptr<session>& one : context_.sessions.all())
        for (const std::shared_ptr<tree>& each : one->trees())
            ++trees[each->target.get()];
    const share_list::snapshot all = context_.shares.current();
    for (const std::shared_ptr<share>& one : *all) {
        const share_configuration& as = one->configuration();
        into.shares.push_back({.name = as.name,
                               .source = as.source,
                               .is_read_only = as.is_read_only,
                               .requires_encryption = as.encryption == protection::required,
                               .is_hidden = as.is_hidden or one->is_pipes(),
                               .trees = trees[one.get()],
                               .files = one->open_files()});
    }
    into.files = context_.files.size();
}

void smb_server::add_paths_to(server_snapshot& into) const {
    for (std::size_t i = 0; i != read_paths; ++i) {
        const auto path = static_cast<read_path>(i);
        path_use use{.name = name_of(path)};
        for (const auto& each : context_.loops()) {
            const path_counters::counts some = each->data.counted.of(path);
            use.requests += some.requests;
            use.bytes += some.bytes;
        }
        into.paths.push_back(use);
    }
}

void smb_server::add_totals_to(server_snapshot& into) const {
    into.name = context_.configuration().name;
    into.started_at = context_.started_at();
    into.taken_at = context_.clock().utc_now();
    for (const io::socket_address& where : addresses())
        into.addresses.push_back(where.text());
    for (const auto& each : context_.loops())
        into.loops.push_back({.multiplexer = std::string(each->multiplexer.name())});
    (void)context_.connections.read_each([&](const connection& client) {
        ENSURE(client.home().number < into.loops.size(), "a connection has its home on one of the loops");
        ++into.loops[client.home().number].connections;
    });
    into.denied_connections = context_.hosts.denied();
    into.cross_loop_posts = cross_loop_posts::so_far();
    if (const loop_watchdog* const watchdog = context_.watchdog()) {
        into.loop_slow_turns = watchdog->slow_turns();
        into.loop_stalls = watchdog->stalls();
    }
    add_shares_to(into);
    add_paths_to(into);
    into.leases = context_.leases.size();
    for (const auto& each : context_.loops())
        into.buffers += each->buffers.taken();
    into.in_use = in_use();
    for (const std::shared_ptr<session>& one : context_.sessions.all())
        into.session_ids.push_back(one->id);
    into.open_numbers = context_.opens.numbers();
    std::ranges::sort(into.session_ids);
    std::ranges::sort(into.open_numbers);
}

server_snapshot smb_server::snapshot(const snapshot_request& wanted) const {
    server_snapshot taken;
    traffic of_open;
    taken.traffic =
        context_.connections.read_each([&](const connection& client) { of_open += client.counters.now(); });
    taken.traffic += of_open;
    if (wanted.has_totals) add_totals_to(taken);
    std::vector<session_and_channels> sessions;
    for (const std::uint64_t id : wanted.sessions)
        if (std::shared_ptr<session> found = context_.find_session(id)) {
            std::vector<std::shared_ptr<channel>> channels = found->channels();
            sessions.push_back({std::move(found), std::move(channels)});
        }
    if (not sessions.empty()) add_sessions(taken.sessions, context_.connections, sessions);
    for (const std::uint64_t number : wanted.opens)
        if (const std::shared_ptr<open> found = context_.opens.find_persistent(number);
            found != nullptr and found->is_live())
            taken.opens.push_back(status_of(*found, wanted.has_names));
    return taken;
}

}  // namespace sluice::smb::server
