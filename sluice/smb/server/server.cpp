#include "sluice/smb/server/server.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

#include "sluice/io/stream/socket_sender.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/server/command/binding.hpp"
#include "sluice/smb/server/command/command.hpp"
#include "sluice/smb/server/core/date_steps.hpp"
#include "sluice/smb/server/operation/administration.hpp"
#include "sluice/smb/server/operation/directory_caching.hpp"
#include "sluice/smb/server/operation/lease_breaks.hpp"
#include "sluice/smb/server/operation/open_closer.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"
#include "sluice/smb/server/operation/recycle_report.hpp"
#include "sluice/smb/server/operation/restoring.hpp"
#include "sluice/smb/server/operation/session_life.hpp"

namespace sluice::smb::server {

namespace {

constexpr std::chrono::milliseconds pause_when_out_of_descriptors{50};

// A client that has vanished must not block others with its opens indefinitely.
constexpr io::socket_options kept_alive{.keep_alive = true,
                                        .keep_alive_after = {.idle = limits::keep_alive_idle,
                                                             .interval = limits::keep_alive_interval,
                                                             .probes = limits::keep_alive_probes,
                                                             .user_timeout = limits::user_timeout}};

constexpr dispatcher functions_of_connections{.rule_of = rule_of,
                                              .prove_session_key = prove_session_key,
                                              .lose_channel = lose_channel,
                                              .end_channel = end_channel,
                                              .end_open_of = end_open_of,
                                              .end_unsent_grant = end_unsent_grant,
                                              .examine_directories_soon = examine_directories_soon,
                                              .break_directory_soon = break_directory_soon};

}  // namespace

smb_server::smb_server(const server_dependencies& given, server_configuration configuration) noexcept
    : smb_server(given, std::move(configuration), std::exchange(configuration.shares, {})) {}

// The configuration must not keep shares that a reload removes.
smb_server::smb_server(const server_dependencies& given, server_configuration&& configuration,
                       std::vector<share_configuration> shares) noexcept
    : context_(given, std::move(configuration), functions_of_connections), listening_(given.loop) {
    // From now on the first loop is this thread's.
    (void)given.loop.invoke_posted_items(0);
    ENSURE(given.loop.is_owner(), "the first loop is of the thread that makes the server");
    add_shares({}, std::move(shares));
}

// Publishes these shares, and `kept`.
void smb_server::add_shares(std::vector<std::shared_ptr<share>> kept,
                            std::vector<share_configuration> fresh) {
    std::vector<io::io_multiplexer*> served_on;
    for (const auto& each : context_.loops())
        served_on.push_back(&each->multiplexer);
    std::vector<std::shared_ptr<share>> all = std::move(kept);
    for (share_configuration& one : fresh) {
        ENSURE((one.volume == nullptr) != one.referral.empty(), "a share has a volume or refers to others");
        const std::shared_ptr<vfs::volume> volume = one.volume;
        ENSURE(not one.continuous_availability or one.journal != nullptr,
               "the persistent opens of a share have a journal");
        if (one.continuous_availability or one.journal != nullptr) context_.set_persistent_opens();
        loop_watchdog* const watchdog = context_.watchdog();
        const std::uint32_t domain = watchdog == nullptr ? 0 : watchdog->domains().number_of(one.name);
        all.push_back(make_share(std::make_unique<share>(std::move(one), domain)));
        if (not all.back()->has_volume()) continue;
        served_volume& served = served_as(volume, served_on);
        all.back()->feed = served.feed.lock();
        if (all.back()->feed == nullptr and volume->changes() != nullptr)
            served.feed = all.back()->feed = run_feed(volume);
    }
    all.push_back(std::make_shared<share>());
    context_.shares.publish(std::move(all));
    // The volumes may have found problems when they were opened.
    const share_list::snapshot now = context_.shares.current();
    for (const std::shared_ptr<share>& each : *now)
        if (each->has_volume()) report_recycle_problem(context_, each->volume());
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
    context_.background.spawn(run_changes(running));
    if (of->needs_tidying()) context_.background.spawn(run_tidying(running));
    return {running.get(), [running](volume_feed* ending) noexcept { ending->scope.cancel(); }};
}

// Any loop may release a share last. The volume is destroyed on the first loop, whose multiplexer
// it uses.
std::shared_ptr<share> smb_server::make_share(std::unique_ptr<share> made) noexcept {
    return {made.release(), [&first = context_.loop()](share* unused) noexcept {
                do_on(first, [unused]() noexcept { delete unused; });
            }};
}

// Holds the volume, which outlives its feed so.
io::task<void> smb_server::run_changes(std::shared_ptr<volume_feed> of) noexcept {
    io::task<void> running = io::in_scope(of->scope, deliver_changes(*of->volume));
    co_await std::move(running);
}

io::task<void> smb_server::run_tidying(std::shared_ptr<volume_feed> of) noexcept {
    io::task<void> running = io::in_scope(of->scope, tidy(*of->volume));
    co_await std::move(running);
}

// On a worker of the volume's domain, with a pause after each part, in which clients have the file
// system for themselves. When a computer starts, its date may be wrong, so the first pass does not
// use it.
io::task<void> smb_server::tidy(vfs::volume& of) noexcept {
    ENSURE(context_.loop().is_owner() and of.needs_tidying(),
           "a volume with a bin is tidied by the first loop");
    std::optional<clock_source::utc_time> now;
    const auto part = [&]() -> result<bool> { return of.tidy(now); };
    date_steps steps(context_.clock());
    for (;;) {
        const result<bool> done = co_await within_work(of.domain().offload(context_.loop(), nullptr, part));
        const bool has_more = done and * done;
        if (not has_more) report_recycle_problem(context_, of);
        const deadline until(has_more ? limits::tidying_part_pause : limits::tidying_pause);
        io::task<bool> waiting = pass(context_.loop(), until);
        const bool has_slept = co_await within_work(std::move(waiting));
        if (not has_slept) co_return;
        if (has_more) continue;
        now = context_.clock().utc_now();
        if (not steps.have_advanced()) continue;
        now.reset();
        context_.log().write(event_severity::warning,
                             "the date has advanced by a step; recycled files are not removed now", {});
    }
}

io::task<void> smb_server::deliver_changes(vfs::volume& of) noexcept {
    vfs::change_feed& feed = *of.changes();
    const auto deliver = [&feed] {
        feed.deliver();
        return true;
    };
    for (;;) {
        io::task<bool> waiting = feed.co_changed();
        const bool goes_on = co_await within_work(std::move(waiting));
        if (not goes_on) break;
        ENSURE(context_.loop().is_owner(), "changes are delivered on the first loop");
        loop_activity::begin(std::nullopt);
        (void)co_await within_work(of.domain().run(context_.loop(), deliver, vfs::waits_for_calls::yes));
        // Not in this task: the feed would lose changes while it waits.
        if (context_.directories.has_events()) examine_directories_soon(context_);
    }
    const share_list::snapshot shares = context_.shares.current();
    for (const std::shared_ptr<share>& one : *shares)
        if (one->has_volume() and &one->volume() == &of) one->end_feed();
    end_directory_watches(context_, of);
}

void smb_server::replace_shares(std::vector<share_configuration> fresh) {
    ENSURE(context_.loop().is_owner(), "shares are replaced on the first loop");
    std::vector<std::shared_ptr<share>> kept;
    const share_list::snapshot before = context_.shares.current();
    for (const std::shared_ptr<share>& one : *before) {
        const auto same = std::ranges::find_if(fresh, [&](const share_configuration& wanted) {
            return not one->is_pipes() and one->configuration().is_same_as(wanted);
        });
        if (same == fresh.end()) continue;
        fresh.erase(same);
        kept.push_back(one);
    }
    add_shares(kept, std::move(fresh));
    // The feed of a volume goes on if one of the new shares has it.
    for (const std::shared_ptr<share>& one : *before)
        if (std::ranges::find(kept, one) == kept.end()) one->withdraw();
    end_trees_beyond_rights(context_);
}

smb_server::~smb_server() {
    ENSURE(context_.connections.size() == 0 and context_.sessions.size() == 0,
           "a server is stopped before it goes");
}

void smb_server::restore() {
    ENSURE(context_.loop().is_owner() and listeners_.empty(), "opens are restored before clients come");
    restore_opens(context_);
}

result<void> smb_server::start(std::span<const io::socket_address> where) noexcept {
    ENSURE(listeners_.empty() and not context_.connections.is_stopping(),
           "a server starts once, before it stops");
    listeners bound;
    for (const io::socket_address& address : where) {
        auto listener = io::listening_socket_handle::listen(address, {.accepted = kept_alive});
        if (not listener) return failure(listener.error());
        bound.push_back(std::make_unique<io::listening_socket_handle>(*std::move(listener)));
        const auto attached = bound.back()->set_multiplexer(&context_.loop());
        if (not attached) return failure(attached.error());
    }
    accept_on_all(std::move(bound));
    return {};
}

result<void> smb_server::start_with(std::span<const int> descriptors) noexcept {
    ENSURE(listeners_.empty() and not context_.connections.is_stopping(),
           "a server starts once, before it stops");
    listeners taken;
    const auto release_all = [&taken](const error& why) {
        for (const auto& each : taken)
            (void)each->release();
        return failure(why);
    };
    for (const int descriptor : descriptors) {
        auto listener = io::listening_socket_handle::adopt(descriptor, kept_alive);
        if (not listener) return release_all(listener.error());
        taken.push_back(std::make_unique<io::listening_socket_handle>(*std::move(listener)));
    }
    for (const auto& each : taken)
        if (const auto attached = each->set_multiplexer(&context_.loop()); not attached)
            return release_all(attached.error());
    accept_on_all(std::move(taken));
    return {};
}

void smb_server::accept_on_all(listeners bound) noexcept {
    listeners_ = std::move(bound);
    for (const auto& listener : listeners_)
        listening_.spawn(accept_on(*listener));
}

io::task<void> smb_server::accept_on(io::listening_socket_handle& listener) noexcept {
    while (not context_.connections.is_stopping()) {
        auto accepted = co_await io::async_accept(listener);
        if (not accepted) {
            if (accepted.error() == std::errc::operation_canceled) co_return;
            context_.log().write(event_severity::warning, "cannot accept a connection",
                                 {{"why", accepted.error().message()}});
            const deadline pause(pause_when_out_of_descriptors);
            (void)co_await io::co_sleep(context_.loop(), pause);
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
    const auto its_own = std::ranges::find_if(
        context_.loops(), [&](const auto& each) { return &each->multiplexer == socket.multiplexer(); });
    if (its_own == context_.loops().end()) return context_.homes.enter(host_of(peer));
    ENSURE(context_.loops()[(*its_own)->number] == *its_own, "the number of a loop is its index");
    context_.homes.enter(host_of(peer), (*its_own)->number);
    return (*its_own)->number;
}

// Those that end are among them for a moment.
std::size_t smb_server::sockets_max() const noexcept {
    const server_bounds& bounds = context_.admission.bounds();
    return context_.quotas.bound_of(limit::connections) + 2 * bounds.connections_without_session;
}

// Before any byte of it is read.
bool smb_server::is_denied(const io::socket_address& peer) noexcept {
    if (context_.hosts.permits(peer)) return false;
    context_.hosts.count_denied();
    context_.log().write(event_severity::warning, "connection closed: its address is denied",
                         {{"peer", peer.text()}, {"hint", "change allowed-host or denied-host"}});
    return true;
}

void smb_server::replace_host_rules(host_rules fresh) {
    ENSURE(context_.loop().is_owner(), "rules are replaced on the first loop");
    context_.hosts.publish(std::move(fresh));
    std::vector<std::shared_ptr<connection_handle>> denied;
    (void)context_.connections.read_each([&](const connection& client) {
        if (not context_.hosts.permits(client.peer())) denied.push_back(client.admitted.handle);
    });
    for (const std::shared_ptr<connection_handle>& one : denied) {
        context_.hosts.count_denied();
        one->close("its address is denied");
    }
}

void smb_server::adopt(io::socket_handle socket, const io::socket_address& peer) noexcept {
    if (is_denied(peer)) return;
    // Here already: a loop that is busy takes its connections later, and their descriptors must
    // not be all there are.
    if (not context_.connections.take_socket(sockets_max())) {
        context_.rejections.add(limit::connections_without_session, client_address(peer).text());
        return;
    }
    const std::size_t number = choose_home(socket, peer);
    context_.loops()[number]->do_here([this, number, given = std::move(socket), peer]() mutable noexcept {
        serve_at(number, std::move(given), peer);
    });
}

// On the thread of that loop.
void smb_server::serve_at(std::size_t loop, io::socket_handle socket,
                          const io::socket_address& peer) noexcept {
    server_loop& home = *context_.loops()[loop];
    ENSURE(home.number == loop and home.multiplexer.is_owner(), "a connection is served on its home loop");
    const bool has_loop = socket.multiplexer() != nullptr;
    if (context_.connections.is_stopping() or
        (not has_loop and not socket.set_multiplexer(&home.multiplexer))) {
        context_.homes.leave(host_of(peer), loop);
        context_.connections.release_socket();
        return;
    }
    home.connections.spawn(serve(loop, std::move(socket), peer));
}

io::task<void> smb_server::serve(std::size_t loop, io::socket_handle socket,
                                 io::socket_address peer) noexcept {
    server_loop& home = *context_.loops()[loop];
    const auto client = std::make_shared<connection>(context_, home, std::move(socket), peer);
    client->admitted.handle = std::make_shared<connection_handle>(home, client, client->peer_host());
    context_.connections.enter(*client, client->admitted.handle);
    // The rules may have changed on the way to this loop, before the registry had the connection.
    if (is_denied(peer)) client->close("its address is denied");
    if (const auto evicted = context_.admission.enter(client->admitted))
        evicted->close("too many connections without a session from this address");
    io::task<void> running = client->run();
    co_await std::move(running);
    ENSURE(home.multiplexer.is_owner() and not client->has_channels(),
           "a connection ends on its home loop, without channels");
    context_.admission.leave(client->admitted);
    context_.connections.leave(*client, client->counters.now());
    context_.homes.leave(client->peer_host(), loop);
    context_.connections.release_socket();
}

std::size_t smb_server::end_sessions_of_removed_users() noexcept {
    return server::end_sessions_of_removed_users(context_);
}

std::optional<std::size_t> smb_server::end_session(std::uint64_t id, std::string_view by) noexcept {
    const std::shared_ptr<session> found = context_.sessions.find(id);
    if (found == nullptr) return std::nullopt;
    const session::phase now = found->state();
    const bool is_established = now == session::phase::valid or now == session::phase::expired;
    if (not is_established or not found->claim_end()) return std::nullopt;
    const ended_session ended = end_session_by(context_, *found, by);
    return ended.has_ended ? std::optional(ended.opens) : std::nullopt;
}

bool smb_server::close_file(std::uint64_t number, std::string_view by) noexcept {
    const std::shared_ptr<open> found = context_.opens.find_persistent(number);
    if (found == nullptr or not found->is_live() or found->is_pipe()) return false;
    return close_file_by(context_, *found, by) != wire::nt_status::file_closed;
}

void smb_server::stop() noexcept {
    for (const auto& client : context_.connections.stop())
        client->close("server stopping");
    listening_.cancel();
    for (const auto& each : context_.loops())
        each->do_here([&home = *each]() noexcept { home.connections.cancel(); });
}

namespace {

// Runs what other loops have posted to it so far: the items may refer to the server.
[[nodiscard]] io::task<void> run_posted_items(server_loop& of, io::io_multiplexer& then) noexcept {
    co_await io::resume_on(of.multiplexer);
    co_await io::yield(of.multiplexer);
    co_await io::resume_on(then);
}

[[nodiscard]] io::task<void> join_connections(server_loop& of, io::io_multiplexer& then) noexcept {
    co_await io::resume_on(of.multiplexer);
    co_await of.connections.join();
    co_await io::resume_on(then);
}

}  // namespace

io::task<void> smb_server::announce_stop() noexcept {
    ENSURE(context_.loop().is_owner(), "a stop is announced on the first loop");
    if (std::exchange(has_announced_stop_, true) or announce_end_of_sessions(context_) == 0) co_return;
    // Loops that have not run the notifications posted to them. Not awaited: a loop may be stuck.
    const auto unfinished = std::make_shared<std::atomic<std::size_t>>(context_.loops().size());
    for (const auto& each : context_.loops())
        // release: publishes the unsent bytes of the notifications, which the loop ran first.
        each->do_here([unfinished]() noexcept { unfinished->fetch_sub(1, std::memory_order_release); });
    for (auto waited = std::chrono::nanoseconds::zero(); waited < limits::stop_notice_max;
         waited += limits::stop_notice_check_period) {
        bool has_unsent = unfinished->load(std::memory_order_acquire) != 0;  // pairs with it
        (void)context_.connections.read_each(
            [&has_unsent](const connection& one) { has_unsent = has_unsent or one.has_unsent(); });
        if (not has_unsent) co_return;
        const deadline until(limits::stop_notice_check_period);
        (void)co_await io::co_sleep(context_.loop(), until);
    }
}

io::task<void> smb_server::done() noexcept {
    co_await listening_.join();
    // A file system that does not answer may keep this process; its successor needs the addresses.
    listeners_.clear();
    for (const auto& each : context_.loops()) {
        io::task<void> joining = join_connections(*each, context_.loop());
        if (each != context_.loops().front()) joining = io::uncancelled(std::move(joining));
        co_await std::move(joining);
    }
    leave_persistent_opens(context_);
    end_all_opens(context_);
    io::task<void> breaks_sent = context_.breaks.none_left(context_.loop());
    co_await std::move(breaks_sent);
    context_.background.cancel();
    co_await context_.background.join();
    for (const auto& each : context_.loops())
        co_await io::uncancelled(run_posted_items(*each, context_.loop()));
    ENSURE(context_.opens.size() == 0 and context_.leases.size() == 0,
           "no open outlives the server, and no lease its opens");
    ENSURE(context_.connections.size() == 0 and context_.sessions.size() == 0,
           "nothing is left of any client");
}

std::vector<io::socket_address> smb_server::addresses() const {
    std::vector<io::socket_address> all;
    for (const auto& listener : listeners_)
        if (const auto where = listener->local_address()) all.push_back(*where);
    return all;
}

server_gauges smb_server::gauges() const noexcept {
    server_gauges now{.connections = context_.connections.size(),
                      .sessions = context_.sessions.size(),
                      .opens = context_.opens.size()};
    now.files = context_.files.size();
    for (const auto& each : context_.loops())
        now.buffers += each->buffers.taken();
    now.cross_loop_posts = cross_loop_posts::so_far();
    return now;
}

}  // namespace sluice::smb::server
