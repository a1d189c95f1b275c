#include "sluice/smb/server/server.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/socket_sender.hpp"
#include "sluice/io/sync_wait.hpp"
#include "sluice/smb/server/closing.hpp"
#include "sluice/smb/server/durable.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::chrono::milliseconds pause_when_out_of_descriptors{50};

// A client that has vanished must not block others with its opens indefinitely.
constexpr io::socket_options kept_alive{.keep_alive = true,
                                        .keep_alive_after = {.idle = limits::keep_alive_idle,
                                                             .interval = limits::keep_alive_interval,
                                                             .probes = limits::keep_alive_probes,
                                                             .user_timeout = limits::user_timeout}};

}  // namespace

smb_server::smb_server(const server_seams& seams, server_configuration configuration) noexcept
    : log_(seams.log, seams.clock),
      rejections(log_, seams.clock),
      quotas(configuration.bounds.shared, rejections),
      admission(configuration.bounds, quotas, rejections),
      logons(seams.clock, rejections),
      refusals(log_, seams.clock),
      background(seams.loop, latch_),
      later(seams.clock, background),
      seams_(seams),
      configuration_(std::move(configuration)),
      homes_(1 + seams.other_loops.size()),
      listening_(seams.loop),
      started_at_(seams.clock.utc_now()) {
    const std::size_t loop_bytes_max = admission.bounds().buffer_bytes / (1 + seams_.other_loops.size());
    loops_.push_back(std::make_unique<server_loop>(seams_.loop, loop_bytes_max));
    for (io::io_multiplexer* const other : seams_.other_loops)
        loops_.push_back(std::make_unique<server_loop>(*other, loop_bytes_max));
    // From now on the first loop is this thread's.
    (void)seams_.loop.invoke_posted_items(0);
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
    std::vector<io::io_multiplexer*> served_on;
    for (const auto& each : loops_)
        served_on.push_back(&each->multiplexer);
    for (share_configuration& one : fresh) {
        const std::shared_ptr<vfs::volume> volume = one.volume;
        const std::uint32_t domain =
            seams_.watchdog == nullptr ? 0 : seams_.watchdog->domains().number_of(one.name);
        shares_.push_back(make_share(std::make_unique<share>(std::move(one), domain)));
        served_volume& served = served_as(volume, served_on);
        shares_.back()->feed = served.feed.lock();
        if (shares_.back()->feed == nullptr and volume->changes() != nullptr)
            served.feed = shares_.back()->feed = run_feed(volume);
    }
    shares_.push_back(std::make_shared<share>());
}

// A volume gets its loops once: others may be using them already.
smb_server::served_volume& smb_server::served_as(const std::shared_ptr<vfs::volume>& which,
                                                 std::span<io::io_multiplexer* const> loops) {
    std::erase_if(volumes_, [](const served_volume& each) { return each.volume.expired(); });
    const auto known = std::ranges::find_if(
        volumes_, [&](const served_volume& each) { return each.volume.lock() == which; });
    if (known != volumes_.end()) return *known;
    which->serve_on(loops);
    return volumes_.emplace_back(served_volume{.volume = which, .feed = {}});
}

// Runs until what it returns is released for the last time.
std::shared_ptr<volume_feed> smb_server::run_feed(const std::shared_ptr<vfs::volume>& of) {
    const auto running = std::make_shared<volume_feed>();
    running->volume = of;
    background.spawn(run_changes(running));
    return {running.get(), [running](volume_feed* ending) noexcept { ending->scope.cancel(); }};
}

// Whoever lets go of it last, its volume goes on the first loop, whose multiplexer it knows.
std::shared_ptr<share> smb_server::make_share(std::unique_ptr<share> made) noexcept {
    return {made.release(), [&first = seams_.loop](share* unused) noexcept {
                do_on(first, [unused]() noexcept { delete unused; });
            }};
}

// Holds the volume, which outlives its feed so.
io::task<void> smb_server::run_changes(std::shared_ptr<volume_feed> of) noexcept {
    io::task<void> running = io::in_scope(of->scope, tell_changes(*of->volume->changes()));
    co_await std::move(running);
}

io::task<void> smb_server::tell_changes(vfs::change_feed& of) noexcept {
    for (;;) {
        io::task<bool> waiting = of.co_changed();
        const bool goes_on = co_await unlatched(latch_, std::move(waiting));
        if (not goes_on) co_return;
        of.tell();
    }
}

void smb_server::replace_shares(std::vector<share_configuration> fresh) {
    const server_latch::hold held(latch_);
    std::vector<std::shared_ptr<share>> kept;
    const std::vector<std::shared_ptr<share>> before = std::exchange(shares_, {});
    for (const std::shared_ptr<share>& one : before) {
        const auto same = std::ranges::find_if(fresh, [&](const share_configuration& wanted) {
            return not one->is_pipes() and one->configuration().is_same_as(wanted);
        });
        if (same == fresh.end()) continue;
        fresh.erase(same);
        kept.push_back(one);
    }
    shares_ = kept;
    add_shares(std::move(fresh));
    // The feed of a volume goes on if one of the new shares has it.
    for (const std::shared_ptr<share>& one : before)
        if (std::ranges::find(kept, one) == kept.end()) one->withdraw();
}

smb_server::~smb_server() {
    ENSURE(connections_.empty() and sessions_.empty(), "a server is stopped before it goes");
}

result<void> smb_server::start(std::span<const io::socket_address> where) noexcept {
    std::vector<std::unique_ptr<io::listening_socket_handle>> bound;
    for (const io::socket_address& address : where) {
        auto listener = io::listening_socket_handle::listen(address, {.accepted = kept_alive});
        if (not listener) return failure(listener.error());
        bound.push_back(std::make_unique<io::listening_socket_handle>(*std::move(listener)));
        const auto attached = bound.back()->set_multiplexer(&loop());
        if (not attached) return failure(attached.error());
    }
    listeners_ = std::move(bound);
    for (const auto& listener : listeners_)
        listening_.spawn(accept_on(*listener));
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
        adopt(std::move(accepted->socket), accepted->peer);
    }
}

namespace {

[[nodiscard]] std::string host_of(const io::socket_address& peer) {
    const std::string text = peer.text();
    return text.substr(0, text.rfind(':'));
}

}  // namespace

std::size_t smb_server::choose_home(const io::socket_handle& socket, const io::socket_address& peer) {
    const server_latch::hold held(latch_);
    const auto its_own = std::ranges::find_if(
        loops_, [&](const auto& each) { return &each->multiplexer == socket.multiplexer(); });
    if (its_own == loops_.end()) return homes_.enter(host_of(peer));
    const auto number = static_cast<std::size_t>(its_own - loops_.begin());
    homes_.enter(host_of(peer), number);
    return number;
}

std::size_t smb_server::number_of(const server_loop& one) const noexcept {
    const auto found = std::ranges::find_if(loops_, [&](const auto& each) { return each.get() == &one; });
    return static_cast<std::size_t>(found - loops_.begin());
}

// Those that end are among them for a moment.
std::size_t smb_server::sockets_max() const noexcept {
    const server_bounds& bounds = admission.bounds();
    return quotas.bound_of(limit::connections) + 2 * bounds.connections_without_session;
}

void smb_server::adopt(io::socket_handle socket, const io::socket_address& peer) noexcept {
    {
        // Here already: a loop that is busy takes its connections later, and their descriptors must not be
        // all there are.
        const server_latch::hold held(latch_);
        if (sockets_ >= sockets_max()) {
            rejections.add(limit::connections_without_session, client_address(peer).text());
            return;
        }
        ++sockets_;
    }
    const std::size_t number = choose_home(socket, peer);
    loops_[number]->do_here([this, number, given = std::move(socket), peer]() mutable noexcept {
        serve_at(number, std::move(given), peer);
    });
}

// On the thread of that loop.
void smb_server::serve_at(std::size_t loop, io::socket_handle socket,
                          const io::socket_address& peer) noexcept {
    server_loop& home = *loops_[loop];
    {
        const server_latch::hold held(latch_);
        if (is_stopping_ or
            (socket.multiplexer() == nullptr and not socket.set_multiplexer(&home.multiplexer))) {
            homes_.leave(host_of(peer), loop);
            --sockets_;
            return;
        }
    }
    home.connections.spawn(serve(loop, std::move(socket), peer));
}

io::task<void> smb_server::serve(std::size_t loop, io::socket_handle socket,
                                 io::socket_address peer) noexcept {
    const auto client = std::make_shared<connection>(*this, *loops_[loop], std::move(socket), peer);
    {
        const server_latch::hold held(latch_);
        connections_.emplace(client.get(), client.get());
        if (connection* const evicted = admission.enter(*client))
            evicted->close("its address has too many connections without a session");
    }
    io::task<void> running = client->run();
    co_await std::move(running);
    const server_latch::hold held(latch_);
    traffic_of_ended_ += client->counters.now();
    admission.leave(*client);
    connections_.erase(client.get());
    homes_.leave(client->peer_host(), loop);
    --sockets_;
}

void smb_server::stop() noexcept {
    const server_latch::hold held(latch_);
    is_stopping_ = true;
    for (const auto& [key, client] : connections_)
        client->close("the server stops");
    listening_.cancel();
    for (const auto& each : loops_)
        each->do_here([&home = *each]() noexcept { home.connections.cancel(); });
}

namespace {

[[nodiscard]] io::task<void> join_connections(server_loop& of, io::io_multiplexer& then) noexcept {
    co_await io::resume_on(of.multiplexer);
    co_await of.connections.join();
    co_await io::resume_on(then);
}

}  // namespace

io::task<void> smb_server::done() noexcept {
    co_await listening_.join();
    for (const auto& each : loops_) {
        io::task<void> joining = join_connections(*each, loop());
        if (each != loops_.front()) joining = io::uncancelled(std::move(joining));
        co_await std::move(joining);
    }
    end_opens_left();
    io::task<void> telling = latched(latch_, breaks.none_left(latch_, loop()));
    co_await std::move(telling);
    background.cancel();
    co_await background.join();
}

// Durable opens outlive their sessions, not the server.
void smb_server::end_opens_left() noexcept {
    const server_latch::hold held(latch_);
    std::vector<std::shared_ptr<open>> left;
    for (const auto& [number, one] : opens)
        left.push_back(one);
    for (const std::shared_ptr<open>& one : left)
        (void)end_open(*this, *one);
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
    const server_latch::hold held(latch_);
    server_gauges now{
        .connections = connections_.size(), .sessions = sessions_.size(), .opens = opens.size()};
    now.files = files.size();
    for (const auto& each : loops_)
        now.buffers += each->buffers.taken();
    now.handed_over = hand_overs::so_far();
    now.latch_sleeps = latch_.sleeps();
    return now;
}

std::shared_ptr<channel> smb_server::make_session(connection& on) {
    if (not admission.may_begin(on)) return nullptr;
    const auto fresh = std::make_shared<session>(next_session_id_ + 1, on.agreed, opens.memory());
    fresh->since = clock().utc_now();
    std::shared_ptr<channel> first = make_channel(fresh, on);
    if (first == nullptr) return nullptr;
    sessions_.emplace(++next_session_id_, fresh);
    if (const std::optional<std::uint64_t> evicted = admission.begin(*fresh, on))
        end_session(*sessions_.at(*evicted), false);
    return first;
}

std::shared_ptr<channel> smb_server::make_channel(const std::shared_ptr<session>& of, connection& on) {
    // What a connection still serves while it ends must not leave anything with it.
    if (on.is_closing()) return nullptr;
    const bool is_connection_full = on.channels.size() >= limits::sessions_per_connection_max;
    if (not is_connection_full and of->channels.size() >= limits::channels_per_session_max) {
        // A copy of a request that binds the session begins a channel, but never establishes one.
        const auto oldest = std::ranges::find(of->channels, false, &channel::is_established);
        if (oldest != of->channels.end()) end_channel(**oldest);
    }
    if (is_connection_full or of->channels.size() >= limits::channels_per_session_max) {
        rejections.add(is_connection_full ? limit::sessions_per_connection : limit::channels_per_session,
                       on.admitted.from.text());
        return nullptr;
    }
    auto fresh = std::make_shared<channel>(of, on);
    fresh->preauth = on.preauth;
    on.channels.emplace(of->id, fresh);
    of->channels.push_back(fresh.get());
    return fresh;
}

std::shared_ptr<session> smb_server::find_session(std::uint64_t id) noexcept {
    ENSURE(latch_.is_mine());
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

std::vector<std::shared_ptr<connection>> smb_server::connections_of(const std::string& client,
                                                                    const server_loop& at) noexcept {
    const server_latch::hold held(latch_);
    std::vector<std::shared_ptr<connection>> found;
    for (const auto& [key, one] : connections_)
        if (&one->home() == &at and one->peer_host() == client) found.push_back(one->shared_from_this());
    return found;
}

// A loop that has its thread sees the end of a connection when it next looks at its sockets, unless the
// client does not take what was sent before: who hung up one way only is not waited for long.
io::task<void> smb_server::notice_losses_at(server_loop& there, std::string client,
                                            io::io_multiplexer& home) noexcept {
    constexpr std::chrono::milliseconds pause{1};
    constexpr unsigned pauses_max = 250;
    hand_overs::note();
    co_await io::resume_on(there.multiplexer);
    unsigned pauses = 0;
    for (const std::shared_ptr<connection>& one : connections_of(client, there))
        for (; one->has_loss_to_notice() and pauses != pauses_max; ++pauses)
            (void)co_await pass(there.multiplexer, deadline(pause));
    hand_overs::note();
    co_await io::resume_on(home);
}

io::task<void> smb_server::notice_losses(const connection& of) noexcept {
    const std::string client = of.peer_host();
    for (std::size_t i = 0; i != loops_.size(); ++i) {
        if (loops_[i].get() == &of.home() or not homes_.has(client, i)) continue;
        io::task<void> noticing = io::uncancelled(notice_losses_at(*loops_[i], client, of.loop()));
        co_await unlatched(latch_, std::move(noticing));
    }
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

std::size_t smb_server::end_sessions_of_removed_users() noexcept {
    const server_latch::hold held(latch_);
    std::vector<std::shared_ptr<session>> removed;
    for (const auto& [id, one] : sessions_) {
        if (not one->proved) continue;
        const auto now = accounts().find(one->user.name, one->user.domain);
        const bool is_known = now and now->is_guest == one->user.is_guest and not now->is_disabled and
                              auth::equal_in_constant_time(now->hash.view(), one->proved->view());
        if (not is_known) removed.push_back(one);
    }
    // Not kept as durable: the client could not come back for them.
    for (const std::shared_ptr<session>& one : removed)
        end_session(*one, false);
    std::vector<std::shared_ptr<open>> left;
    for (const auto& [number, one] : opens)
        if (one->session == nullptr and one->durable and
            not accounts().find(one->durable->owner, one->durable->owner_domain))
            left.push_back(one);
    for (const std::shared_ptr<open>& one : left)
        (void)end_open(*this, *one);
    return removed.size();
}

namespace {

// A channel leaves both its tables. Its connection may go at once, and so may the channel.
void take_out(channel& ending) noexcept {
    std::erase(ending.session->channels, &ending);
    ending.counted.reset();
    connection& on = *std::exchange(ending.connection, nullptr);
    on.remember(ending);
    on.channels.erase(ending.session->id);
}

void interrupt(const session& of, const tree* only, wire::nt_status why) noexcept {
    for (const channel* one : of.channels)
        one->connection->interrupt(of, only, why);
}

}  // namespace

void smb_server::end_session(session& ending, bool keep_durable) noexcept {
    ENSURE(latch_.is_mine());
    if (ending.state == session::phase::gone) return;
    ending.state = session::phase::gone;
    admission.end(ending);
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
    ENSURE(latch_.is_mine());
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
