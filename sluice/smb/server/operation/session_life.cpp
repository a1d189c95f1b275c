#include "sluice/smb/server/operation/session_life.hpp"

#include <utility>

#include "sluice/smb/server/metadata/share_access.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/durable.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// Interrupts the requests of a session on one of its channels, and, if that has ended, takes it out
// of the table of its connection. In one post, so that no request comes in between.
void leave_connection(const std::shared_ptr<channel>& of, std::shared_ptr<const tree> only,
                      nt_status why) noexcept {
    of->connection->at_home([of, only = std::move(only), why](replier* on) noexcept {
        if (on == nullptr) return;
        connection& home = static_cast<connection&>(*on);
        home.interrupt(*of, only.get(), why);
        if (of->has_ended()) home.forget(*of);
    });
}

// Ends all that an ended session had.
void release_ended_objects(server_context& host, session& ended, session::ended_objects left,
                           bool keep_durable) noexcept {
    ENSURE(ended.state() == session::phase::gone, "the opens of a session end after it");
    host.later.end(left.lifetime);
    for (const std::shared_ptr<channel>& one : left.channels)
        leave_connection(one, nullptr, nt_status::user_session_deleted);
    for (const std::shared_ptr<open>& one : left.opens) {
        if (keep_durable and keep_without_client(host, one, ended)) continue;
        (void)end_open_of(host, *one, &ended);
        // Another may be ending it: it must not name the session any more when this is destroyed.
        (void)one->detach_from(ended);
    }
    host.sessions.remove(ended.id);
    ended.signal_opens_ended();
}

// Ends the counts of the admission together with the session.
[[nodiscard]] auto end_admission(server_context& host, session& of) noexcept {
    return [&host, &of]() noexcept { host.admission.end(of); };
}

}  // namespace

std::shared_ptr<channel> make_session(server_context& host, connection& on) {
    if (not host.admission.may_begin(on.admitted)) return nullptr;
    const auto fresh =
        std::make_shared<session>(host.sessions.take_id(), on.agreed, host.opens.memory(on.home().number));
    fresh->since = host.clock().utc_now();
    std::shared_ptr<channel> first = make_channel(host, fresh, on);
    if (first == nullptr) return nullptr;
    ENSURE(first->session == fresh and not first->is_established(),
           "a session begins with a channel of its own");
    host.sessions.add(fresh);
    // Another loop may evict the same one: then there are still too many.
    for (std::optional<std::uint64_t> evicted = host.admission.begin(*fresh, on.admitted); evicted;
         evicted = host.admission.excess())
        if (const std::shared_ptr<session> victim = host.find_session(*evicted))
            end_session_in_progress(host, *victim);
    return first;
}

std::shared_ptr<channel> make_channel(server_context& host, const std::shared_ptr<session>& of,
                                      connection& on) {
    // A request that a connection still serves while it ends must not leave a channel with it.
    if (on.is_closing()) return nullptr;
    on.publish_agreed();
    if (not on.has_room_for_channel()) {
        host.rejections.add(limit::sessions_per_connection, on.admitted.from.text());
        return nullptr;
    }
    auto fresh = std::make_shared<channel>(of, on.admitted.handle, on.peer().ip_bytes());
    fresh->preauth = on.preauth;
    std::shared_ptr<channel> evicted;
    const bool is_added = of->add(fresh, evicted);
    if (evicted != nullptr) leave_connection(evicted, nullptr, nt_status::user_session_deleted);
    if (not is_added) {
        if (of->state() != session::phase::gone)
            host.rejections.add(limit::channels_per_session, on.admitted.from.text());
        return nullptr;
    }
    ENSURE(on.add_channel(fresh), "a connection is one channel of a session");
    return fresh;
}

void begin_lifetime(server_context& host, session& of) {
    ENSURE(of.state() != session::phase::in_progress, "a lifetime begins when the client has authenticated");
    if (host.configuration().session_lifetime.count() == 0) return;
    const std::uint32_t number = of.next_lifetime();
    const timer_queue::entry fresh =
        host.later.add(host.configuration().session_lifetime, [&host, id = of.id, number]() noexcept {
            if (const std::shared_ptr<session> one = host.find_session(id)) (void)one->expire(number);
        });
    std::optional<timer_queue::entry> outdated = of.set_lifetime(number, fresh);
    host.later.end(outdated);
}

std::size_t end_sessions_of_removed_users(server_context& host) noexcept {
    std::vector<std::shared_ptr<session>> removed;
    for (const std::shared_ptr<session>& one : host.sessions.all()) {
        const session::phase now = one->state();
        const bool is_established = now == session::phase::valid or now == session::phase::expired;
        if (not is_established or not one->has_proof()) continue;
        const auto known = host.accounts().find(one->user.name, one->user.domain);
        const bool is_known = known and known->is_guest == one->user.is_guest and not known->is_disabled and
                              one->has_proof_of(known->hash);
        if (not is_known) removed.push_back(one);
    }
    // Not kept as durable: the client could not come back for them.
    for (const std::shared_ptr<session>& one : removed)
        end_session(host, *one, false);
    for (const std::shared_ptr<open>& one : host.opens.all()) {
        if (not one->is_live() or one->has_session()) continue;
        const std::optional<durability> kept = one->durable();
        if (kept and not host.accounts().find(kept->owner, kept->owner_domain))
            (void)end_open_of(host, *one, nullptr);
    }
    return removed.size();
}

bool end_session(server_context& host, session& ending, bool keep_durable) noexcept {
    const std::shared_ptr<session> held = ending.shared_from_this();
    auto left = ending.end(false, end_admission(host, ending));
    if (left) release_ended_objects(host, ending, *std::move(left), keep_durable);
    ENSURE(ending.state() == session::phase::gone, "a session ends once, and stays so");
    return left.has_value();
}

// Nothing interrupts the wait: the other loop ends the session in one turn. That turn calls a file
// system only for files that are removed on the loop, as for any CLOSE.
io::task<void> co_end_session(server_context& host, io::io_multiplexer& by, std::shared_ptr<session> ending,
                              bool keep_durable) noexcept {
    ENSURE(by.is_owner(), "the caller waits on its own loop");
    end_session(host, *ending, keep_durable);
    one_shot_event<nt_status> woken(by);
    waiting<session> blocked(*ending, woken);
    if (not ending->have_opens_ended(blocked.place())) (void)co_await within_work(woken.wait());
}

void end_session_in_progress(server_context& host, session& ending) noexcept {
    const std::shared_ptr<session> held = ending.shared_from_this();
    if (auto left = ending.end(true, end_admission(host, ending)))
        release_ended_objects(host, ending, *std::move(left), false);
}

void lose_channel(server_context& host, channel& losing) noexcept {
    const std::shared_ptr<session> of = losing.session;
    auto left = of->lose(losing, end_admission(host, *of));
    ENSURE(not losing.is_established(), "nothing is served on a channel that is lost");
    if (left) release_ended_objects(host, *of, *std::move(left), true);
}

void end_channel(server_context& host, channel& ending) noexcept {
    const std::shared_ptr<channel> held = ending.shared_from_this();
    const std::shared_ptr<session> of = ending.session;
    auto left = of->remove(ending, end_admission(host, *of));
    ENSURE(held->has_ended() and not held->is_established(), "a channel that was removed has ended");
    leave_connection(held, nullptr, nt_status::user_session_deleted);
    if (left) release_ended_objects(host, *of, *std::move(left), true);
}

void end_tree(server_context& host, session& of, const tree& ending) noexcept {
    const std::shared_ptr<const tree> held = of.find_tree(ending.id);
    const auto its_opens = of.end_tree(ending);
    if (not its_opens) return;
    ENSURE(held.get() == &ending, "a tree that ends was in the table of its session");
    for (const std::shared_ptr<channel>& one : of.channels())
        leave_connection(one, held, nt_status::network_name_deleted);
    for (const std::shared_ptr<open>& one : *its_opens)
        (void)end_open_of(host, *one, &of);
}

std::size_t announce_end_of_sessions(server_context& host) noexcept {
    std::size_t announced = 0;
    for (const std::shared_ptr<session>& each : host.sessions.all()) {
        const bool is_wanted = each->agreed.is_at_least(wire::dialect::smb_3_1_1) and
                               wire::has(each->agreed.capabilities, wire::capabilities::notifications);
        if (not is_wanted) continue;
        ++announced;
        for (const std::shared_ptr<channel>& via : each->channels())
            if (via->is_established()) connection::notify_session_closed(via);
    }
    return announced;
}

bool end_tree_beyond_rights(server_context& host, session& of, const tree& known) noexcept {
    if (not known.target->is_withdrawn()) return false;
    const std::shared_ptr<share> now = host.find_share(known.target->configuration().name);
    if (now == nullptr or is_still_granted(host.configuration(), of, known, *now)) return false;
    ENSURE(not now->is_pipes(), "the pipes of the server are never withdrawn");
    end_tree(host, of, known);
    host.log().write(event_severity::info, "tree connection ended: its share has other rules",
                     {{"user", of.user.name}, {"share", now->configuration().name}});
    return true;
}

std::size_t end_trees_beyond_rights(server_context& host) noexcept {
    std::size_t ended = 0;
    for (const std::shared_ptr<session>& one : host.sessions.all()) {
        const session::phase now = one->state();
        if (now != session::phase::valid and now != session::phase::expired) continue;
        for (const std::shared_ptr<tree>& each : one->trees())
            if (end_tree_beyond_rights(host, *one, *each)) ++ended;
    }
    return ended;
}

// Durable opens outlive their sessions, not the server.
void end_all_opens(server_context& host) noexcept {
    for (const std::shared_ptr<open>& one : host.opens.all())
        (void)end_open(host, *one);
}

}  // namespace sluice::smb::server
