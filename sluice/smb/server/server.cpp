#include "sluice/smb/server/server.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/socket_sender.hpp"
#include "sluice/smb/server/closing.hpp"
#include "sluice/smb/server/durable.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::chrono::milliseconds pause_when_out_of_descriptors{50};

}  // namespace

smb_server::smb_server(const server_seams& seams, server_configuration configuration) noexcept
    : failures(seams.clock),
      refusals(seams.log, seams.clock),
      background(seams.loop),
      later(seams.loop, seams.clock, background),
      seams_(seams),
      configuration_(std::move(configuration)),
      tasks_(seams.loop),
      started_at_(seams.clock.utc_now()) {
    seams_.random.fill(identity_.bytes);
    names_.netbios_computer = configuration_.name;
    names_.dns_computer = configuration_.name;
    security_offer_ = auth::negotiator::offer();
    // Session ids begin anywhere, so that one of the server's last run means nothing to this one; but below
    // 2^32, for there are clients that keep no more of them.
    next_session_id_ = seams_.random.next_u64() >> 33;
    add_shares(std::exchange(configuration_.shares, {}));
}

void smb_server::add_shares(std::vector<share_configuration> fresh) {
    for (share_configuration& one : fresh) {
        shares_.push_back(std::make_shared<share>(std::move(one)));
        if (shares_.back()->volume().changes() != nullptr) background.spawn(run_changes(shares_.back()));
    }
    shares_.push_back(std::make_shared<share>());
}

// Holds the share, so that its volume outlives the feed.
io::task<void> smb_server::run_changes(std::shared_ptr<share> watched) noexcept {
    io::task<void> running = io::in_scope(watched->feed_scope, watched->volume().changes()->run());
    co_await std::move(running);
}

void smb_server::replace_shares(std::vector<share_configuration> fresh) {
    std::vector<std::shared_ptr<share>> kept;
    for (const std::shared_ptr<share>& one : std::exchange(shares_, {})) {
        const auto same = std::ranges::find_if(fresh, [&](const share_configuration& wanted) {
            return not one->is_pipes() and one->configuration().is_same_as(wanted);
        });
        if (same == fresh.end()) {
            one->withdraw();
            continue;
        }
        fresh.erase(same);
        kept.push_back(one);
    }
    shares_ = std::move(kept);
    add_shares(std::move(fresh));
}

smb_server::~smb_server() {
    ENSURE(connections_.empty() and sessions_.empty(), "a server is stopped before it goes");
}

result<void> smb_server::start(std::span<const io::socket_address> where) noexcept {
    std::vector<std::unique_ptr<io::listening_socket_handle>> bound;
    for (const io::socket_address& address : where) {
        auto listener = io::listening_socket_handle::listen(address);
        if (not listener) return failure(listener.error());
        bound.push_back(std::make_unique<io::listening_socket_handle>(*std::move(listener)));
        const auto attached = bound.back()->set_multiplexer(&loop());
        if (not attached) return failure(attached.error());
    }
    listeners_ = std::move(bound);
    for (const auto& listener : listeners_)
        tasks_.spawn(accept_on(*listener));
    return {};
}

io::task<void> smb_server::accept_on(io::listening_socket_handle& listener) noexcept {
    while (not is_stopping_) {
        auto accepted = co_await io::async_accept(listener);
        if (not accepted) {
            if (accepted.error() == std::errc::operation_canceled) co_return;
            log().write(event_severity::warning, "a connection could not be accepted",
                        {{"why", accepted.error().message()}});
            const deadline pause(pause_when_out_of_descriptors);
            (void)co_await io::co_sleep(loop(), pause);
            continue;
        }
        if (const auto attached = accepted->socket.set_multiplexer(&loop()); not attached) continue;
        adopt(std::move(accepted->socket), accepted->peer);
    }
}

void smb_server::adopt(io::socket_handle socket, const io::socket_address& peer) noexcept {
    const auto without_session = static_cast<std::size_t>(std::ranges::count_if(
        connections_, [](const auto& entry) { return not entry.first->has_had_session; }));
    if (is_stopping_ or connections_.size() >= limits::connections_max or
        without_session >= limits::connections_without_session_max) {
        log().write(event_severity::warning, "a connection was refused: there are too many",
                    {{"peer", peer.text()}});
        return;
    }
    tasks_.spawn(serve(std::move(socket), peer));
}

io::task<void> smb_server::serve(io::socket_handle socket, io::socket_address peer) noexcept {
    const auto client = std::make_unique<connection>(*this, std::move(socket), peer);
    connections_.emplace(client.get(), client.get());
    io::task<void> running = client->run();
    co_await std::move(running);
    connections_.erase(client.get());
}

void smb_server::stop() noexcept {
    is_stopping_ = true;
    for (const auto& [key, client] : connections_)
        client->close("the server stops");
    tasks_.cancel();
}

io::task<void> smb_server::done() noexcept {
    co_await tasks_.join();
    // Durable opens outlive their sessions, not the server.
    std::vector<std::shared_ptr<open>> left;
    for (const auto& [number, one] : opens)
        left.push_back(one);
    for (const std::shared_ptr<open>& one : left)
        (void)end_open(*this, *one);
    background.cancel();
    co_await background.join();
}

std::shared_ptr<share> smb_server::find_share(std::string_view name) const noexcept {
    const auto found = std::ranges::find_if(shares_, [&](const std::shared_ptr<share>& one) {
        return not one->is_withdrawn() and equal_ignoring_case(one->configuration().name, name);
    });
    return found == shares_.end() ? nullptr : *found;
}

std::vector<io::socket_address> smb_server::addresses() const {
    std::vector<io::socket_address> all;
    for (const auto& listener : listeners_)
        if (const auto where = listener->local_address()) all.push_back(*where);
    return all;
}

server_gauges smb_server::gauges() const noexcept {
    server_gauges now{
        .connections = connections_.size(), .sessions = sessions_.size(), .opens = opens.size()};
    for (const std::shared_ptr<share>& one : shares_)
        now.files += one->files().size();
    now.buffers = buffers.taken();
    return now;
}

std::shared_ptr<channel> smb_server::make_session(connection& on) {
    if (sessions_.size() >= limits::sessions_max) return nullptr;
    const auto fresh = std::make_shared<session>(next_session_id_ + 1, on.agreed);
    std::shared_ptr<channel> first = make_channel(fresh, on);
    if (first == nullptr) return nullptr;
    sessions_.emplace(++next_session_id_, fresh);
    return first;
}

std::shared_ptr<channel> smb_server::make_channel(const std::shared_ptr<session>& of, connection& on) {
    // What a connection still serves while it ends must not leave anything with it.
    if (on.is_closing() or on.channels.size() >= limits::sessions_per_connection_max or
        of->channels.size() >= limits::channels_per_session_max)
        return nullptr;
    auto fresh = std::make_shared<channel>(of, on);
    fresh->preauth = on.preauth;
    on.channels.emplace(of->id, fresh);
    of->channels.push_back(fresh.get());
    return fresh;
}

std::shared_ptr<session> smb_server::find_session(std::uint64_t id) noexcept {
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : found->second;
}

std::vector<session*> smb_server::sessions_like(const session& one) noexcept {
    std::vector<session*> alike;
    for (const auto& [id, other] : sessions_) {
        const bool is_alike = other->state == session::phase::valid and
                              other->agreed.client == one.agreed.client and
                              equal_ignoring_case(other->user.name, one.user.name);
        if (is_alike or other.get() == &one) alike.push_back(other.get());
    }
    // Session ids are given in order.
    std::ranges::sort(alike, {}, &session::id);
    return alike;
}

void smb_server::begin_lifetime(session& of) {
    if (of.expiry) later.strike_out(*std::exchange(of.expiry, std::nullopt));
    if (configuration_.session_lifetime.count() == 0) return;
    of.expiry = later.add(configuration_.session_lifetime, [this, id = of.id]() noexcept {
        const std::shared_ptr<session> one = find_session(id);
        ENSURE(one != nullptr, "a session strikes out its own expiry when it ends");
        one->expiry.reset();
        one->state = session::phase::expired;
    });
}

std::size_t smb_server::expire_sessions_of_strangers() noexcept {
    std::size_t count = 0;
    for (const auto& [id, one] : sessions_) {
        const bool is_of_account = one->state == session::phase::valid and not one->user.is_anonymous;
        if (not is_of_account or accounts().find(one->user.name, one->user.domain)) continue;
        one->state = session::phase::expired;
        ++count;
    }
    return count;
}

namespace {

// A channel leaves both its tables. Its connection may go at once, and so may the channel.
void take_out(channel& ending) noexcept {
    std::erase(ending.session->channels, &ending);
    std::exchange(ending.connection, nullptr)->channels.erase(ending.session->id);
}

void interrupt(const session& of, const tree* only, wire::nt_status why) noexcept {
    for (const channel* one : of.channels)
        one->connection->interrupt(of, only, why);
}

}  // namespace

void smb_server::end_session(session& ending, bool keep_durable) noexcept {
    if (ending.state == session::phase::gone) return;
    ending.state = session::phase::gone;
    if (ending.expiry) later.strike_out(*std::exchange(ending.expiry, std::nullopt));
    const std::shared_ptr<session> held = find_session(ending.id);
    interrupt(ending, nullptr, wire::nt_status::user_session_deleted);
    std::vector<std::shared_ptr<open>> of_it;
    for (const auto& [number, one] : ending.opens)
        of_it.push_back(one);
    for (const std::shared_ptr<open>& one : of_it) {
        if (keep_durable and keep_without_client(*this, *one)) continue;
        (void)end_open(*this, *one);
    }
    ENSURE(ending.opens.empty(), "no open outlives its session");
    for (const auto& [number, one] : ending.trees)
        one->is_gone = true;
    ending.trees.clear();
    while (not ending.channels.empty())
        take_out(*ending.channels.back());
    sessions_.erase(ending.id);
}

void smb_server::end_channel(channel& ending) noexcept {
    if (ending.connection == nullptr) return;
    const std::shared_ptr<session> of = ending.session;
    const bool is_last = std::ranges::none_of(
        of->channels, [&](const channel* one) { return one != &ending and one->is_established; });
    if (is_last)
        end_session(*of, true);
    else
        take_out(ending);
}

void smb_server::end_tree(session& of, tree& ending) noexcept {
    const std::shared_ptr<tree> held = of.trees.at(ending.id);
    held->is_gone = true;
    interrupt(of, &ending, wire::nt_status::network_name_deleted);
    std::vector<std::shared_ptr<open>> of_it;
    for (const auto& [number, one] : of.opens)
        if (one->tree == held) of_it.push_back(one);
    for (const std::shared_ptr<open>& one : of_it)
        (void)end_open(*this, *one);
    of.trees.erase(ending.id);
}

}  // namespace sluice::smb::server
