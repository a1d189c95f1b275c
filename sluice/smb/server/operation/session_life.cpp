#include "sluice/smb/server/operation/session_life.hpp"

#include <algorithm>
#include <utility>

#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/durable.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"

namespace sluice::smb::server {

std::shared_ptr<channel> make_session(server_context& host, connection& on) {
    if (not host.admission.may_begin(on.admitted)) return nullptr;
    const auto fresh =
        std::make_shared<session>(host.sessions.take_id(), on.agreed, host.opens.memory(on.home().number));
    fresh->since = host.clock().utc_now();
    std::shared_ptr<channel> first = make_channel(host, fresh, on);
    if (first == nullptr) return nullptr;
    host.sessions.add(fresh);
    if (const std::optional<std::uint64_t> evicted = host.admission.begin(*fresh, on.admitted)) {
        const std::shared_ptr<session> victim = host.find_session(*evicted);
        ENSURE(victim != nullptr and victim->state == session::phase::in_progress,
               "a session in progress is in the table");
        end_session(host, *victim, false);
    }
    return first;
}

std::shared_ptr<channel> make_channel(server_context& host, const std::shared_ptr<session>& of,
                                      connection& on) {
    // A request that a connection still serves while it ends must not leave a channel with it.
    if (on.is_closing()) return nullptr;
    ENSURE(of->state != session::phase::gone, "a session that has ended gets no channels");
    const bool is_connection_full = on.channels.size() >= limits::sessions_per_connection_max;
    if (not is_connection_full and of->channels.size() >= limits::channels_per_session_max) {
        // A copy of a request that binds the session begins a channel, but never establishes one.
        const auto oldest = std::ranges::find(of->channels, false, &channel::is_established);
        if (oldest != of->channels.end()) end_channel(host, **oldest);
    }
    if (is_connection_full or of->channels.size() >= limits::channels_per_session_max) {
        host.rejections.add(is_connection_full ? limit::sessions_per_connection : limit::channels_per_session,
                            on.admitted.from.text());
        return nullptr;
    }
    auto fresh = std::make_shared<channel>(of, on);
    fresh->preauth = on.preauth;
    ENSURE(on.channels.emplace(of->id, fresh).second, "a connection is one channel of a session");
    of->channels.push_back(fresh.get());
    return fresh;
}

void begin_lifetime(server_context& host, session& of) {
    ENSURE(of.state == session::phase::valid, "a lifetime begins when the client has authenticated");
    host.later.end(of.expiry);
    if (host.configuration().session_lifetime.count() == 0) return;
    of.expiry = host.later.add(host.configuration().session_lifetime, [&host, id = of.id]() noexcept {
        const std::shared_ptr<session> one = host.find_session(id);
        ENSURE(one != nullptr, "a session cancels its own expiry when it ends");
        ENSURE(one->state == session::phase::valid, "a session expires once");
        one->expiry.reset();
        one->state = session::phase::expired;
    });
}

std::size_t end_sessions_of_removed_users(server_context& host) noexcept {
    const server_latch::hold held(host.latch());
    std::vector<std::shared_ptr<session>> removed;
    for (const std::shared_ptr<session>& one : host.sessions.all()) {
        if (not one->proved) continue;
        const auto now = host.accounts().find(one->user.name, one->user.domain);
        const bool is_known = now and now->is_guest == one->user.is_guest and not now->is_disabled and
                              auth::equal_in_constant_time(now->hash.view(), one->proved->view());
        if (not is_known) removed.push_back(one);
    }
    // Not kept as durable: the client could not come back for them.
    for (const std::shared_ptr<session>& one : removed)
        end_session(host, *one, false);
    std::vector<std::shared_ptr<open>> left;
    for (const std::shared_ptr<open>& one : host.opens.all())
        if (one->session == nullptr and one->durable and
            not host.accounts().find(one->durable->owner, one->durable->owner_domain))
            left.push_back(one);
    for (const std::shared_ptr<open>& one : left)
        (void)end_open(host, *one);
    return removed.size();
}

namespace {

// A channel leaves both its tables. Its connection may go at once, and so may the channel.
void take_out(channel& ending) noexcept {
    ENSURE(std::erase(ending.session->channels, &ending) == 1, "a channel is in the list of its session");
    ending.counted.reset();
    connection& on = *std::exchange(ending.connection, nullptr);
    on.remember(ending);
    const std::uint64_t id = ending.session->id;
    ENSURE(on.channels.erase(id) == 1, "a channel is in the table of its connection");
}

void interrupt(const session& of, const tree* only, wire::nt_status why) noexcept {
    for (const channel* one : of.channels)
        one->connection->interrupt(of, only, why);
}

}  // namespace

void end_session(server_context& host, session& ending, bool keep_durable) noexcept {
    ENSURE(host.latch().is_mine());
    if (ending.state == session::phase::gone) return;
    ending.state = session::phase::gone;
    host.admission.end(ending);
    host.later.end(ending.expiry);
    const std::shared_ptr<session> held = host.find_session(ending.id);
    ENSURE(held.get() == &ending, "a session is in the table until it ends");
    interrupt(ending, nullptr, wire::nt_status::user_session_deleted);
    std::vector<std::shared_ptr<open>> of_it;
    for (const auto& [number, one] : ending.opens) {
        ENSURE(one->session == &ending, "an open in the table of a session names that session");
        of_it.push_back(one);
    }
    for (const std::shared_ptr<open>& one : of_it) {
        // The end of one before may have ended it: its lease can no longer be broken.
        if (one->is_closed) continue;
        if (keep_durable and keep_without_client(host, *one)) continue;
        (void)end_open(host, *one);
    }
    ENSURE(ending.opens.empty(), "no open outlives its session");
    for (const auto& [number, one] : ending.trees)
        one->is_gone = true;
    ending.trees.clear();
    while (not ending.channels.empty())
        take_out(*ending.channels.back());
    host.sessions.remove(ending.id);
}

void end_channel(server_context& host, channel& ending) noexcept {
    ENSURE(host.latch().is_mine(), "a channel ends under the latch");
    if (ending.connection == nullptr) return;
    const std::shared_ptr<session> of = ending.session;
    const bool is_last = std::ranges::none_of(
        of->channels, [&](const channel* one) { return one != &ending and one->is_established; });
    if (is_last) return end_session(host, *of, true);
    // The end of the session interrupts the requests on its channels only, and this is a channel no longer.
    ending.connection->interrupt(*of, nullptr, wire::nt_status::user_session_deleted);
    take_out(ending);
}

void end_tree(server_context& host, session& of, tree& ending) noexcept {
    ENSURE(host.latch().is_mine());
    const std::shared_ptr<tree> held = of.trees.at(ending.id);
    ENSURE(held.get() == &ending and not held->is_gone,
           "a tree is in the table of its session until it ends");
    held->is_gone = true;
    interrupt(of, &ending, wire::nt_status::network_name_deleted);
    std::vector<std::shared_ptr<open>> of_it;
    for (const auto& [number, one] : of.opens)
        if (one->tree == held) of_it.push_back(one);
    for (const std::shared_ptr<open>& one : of_it)
        (void)end_open(host, *one);
    of.trees.erase(ending.id);
}

// Durable opens outlive their sessions, not the server.
void end_all_opens(server_context& host) noexcept {
    const server_latch::hold held(host.latch());
    for (const std::shared_ptr<open>& one : host.opens.all())
        (void)end_open(host, *one);
}

}  // namespace sluice::smb::server
