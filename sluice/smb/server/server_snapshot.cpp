// The state of a server as plain values.

#include "sluice/smb/server/report/snapshot.hpp"

#include <algorithm>
#include <unordered_map>

#include "sluice/smb/server/core/cross_loop_post.hpp"
#include "sluice/smb/server/server.hpp"

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
    session_status status{.id = one.id,
                          .user = one.user.name,
                          .domain = one.user.domain,
                          .state = name_of(one.state),
                          .is_guest = one.user.is_guest,
                          .is_anonymous = one.user.is_anonymous,
                          .has_keys = one.signing_key.has_value(),
                          .requires_encryption = one.requires_encryption,
                          .since = one.since,
                          .client = text_of(one.agreed.client),
                          .shares = {},
                          .channels = {},
                          .opens = one.opens.size()};
    for (const auto& [number, tree] : one.trees)
        status.shares.push_back(tree->target->configuration().name);
    status.client = text_of(one.agreed.client);
    for (const channel* each : one.channels) {
        ENSURE(each->session.get() == &one, "a channel in the list of a session is one of it");
        if (each->is_established) status.channels.push_back(each->connection->status());
    }
    return status;
}

void add_caching(open_status& status, const open& one) noexcept {
    if (one.lease == nullptr) return;
    status.caching = one.lease->is_oplock() ? caching_kind::oplock : caching_kind::lease;
    status.cached = one.lease->held();
    status.is_breaking = one.lease->is_breaking();
}

void add_names(open_status& status, const open& one) {
    if (one.tree != nullptr) status.share = one.tree->target->configuration().name;
    if (one.node != nullptr) {
        status.path = one.node->path();
        status.stream = one.node->stream_name();
    }
    if (status.locks != 0) status.first_locks = one.file->locks().first_of(one, open_locks_shown_max);
}

[[nodiscard]] open_status status_of(const open& one, bool has_names) {
    ENSURE(one.session == nullptr or not one.is_closed, "an open that has ended has no session");
    open_status status;
    status.number = one.id.persistent_part.value();
    status.session = one.session != nullptr ? one.session->id : 0;
    status.is_directory = one.is_directory();
    status.is_pipe = one.is_pipe();
    status.is_durable = one.durable.has_value();
    status.deletes_on_close = one.deletes_on_close;
    status.access = static_cast<std::uint32_t>(one.access);
    status.share_access = static_cast<std::uint32_t>(one.share_access);
    add_caching(status, one);
    if (one.file != nullptr) status.locks = one.file->locks().held_by(one);
    if (one.watch != nullptr) status.kept_changes = one.watch->kept_changes();
    if (has_names) add_names(status, one);
    return status;
}

}  // namespace

limits_in_use smb_server::in_use() const noexcept {
    ENSURE(context_.latch().is_mine(), "the numbers in use are read under the latch");
    limits_in_use sum;
    (void)context_.connections.read_each([&](const connection& client) { client.add_to(sum); });
    for (const std::shared_ptr<session>& one : context_.sessions.all())
        sum.merge({.channels_of_session = one->channels.size(),
                   .trees_of_session = one->trees.size(),
                   .opens_of_session = one->opens.size()});
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
        for (const auto& [number, tree] : one->trees)
            ++trees[tree->target.get()];
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
    into.handed_over = cross_loop_posts::so_far();
    into.latch_sleeps = context_.latch().sleeps();
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
    const server_latch::hold held(context_.latch());
    server_snapshot taken;
    traffic of_open;
    taken.traffic =
        context_.connections.read_each([&](const connection& client) { of_open += client.counters.now(); });
    taken.traffic += of_open;
    if (wanted.has_totals) add_totals_to(taken);
    for (const std::uint64_t id : wanted.sessions)
        if (const std::shared_ptr<session> found = context_.find_session(id))
            taken.sessions.push_back(status_of(*found));
    for (const std::uint64_t number : wanted.opens)
        if (const std::shared_ptr<open> found = context_.opens.find_persistent(number))
            taken.opens.push_back(status_of(*found, wanted.has_names));
    return taken;
}

}  // namespace sluice::smb::server
