#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/wire/file/change_notify.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/message/logoff.hpp"
#include "tests/simulation.hpp"
#include "tests/smb_simulation/clients/scripted_client.hpp"

// Sessions and opens that end while requests of the same client are served on other loops.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using namespace std::chrono_literals;
using wire::command;
using wire::nt_status;

constexpr std::size_t files_of_session = 20;

[[nodiscard]] std::string name_of(std::size_t file) {
    return "f" + std::to_string(file);
}

// Opens files alone, as many as `files_of_session`. Returns how many of them were refused.
io::task<unsigned> open_all_alone(scripted_client& by, std::size_t first = 0) {
    std::vector<std::uint64_t> asked;
    for (std::size_t i = 0; i != files_of_session; ++i)
        asked.push_back(by.send_create(name_of(first + i), scripted_client::alone()));
    unsigned refused = 0;
    for (const std::uint64_t each : asked) {
        io::task<nt_status> waiting = by.answer_to(each);
        const nt_status status = co_await std::move(waiting);
        refused += status != nt_status::success;
    }
    co_return refused;
}

// --- a session that ends on two loops at once
// -------------------------------------------------------------------------------------------------

// So many that their end takes long: the last one is the last to end.
constexpr std::size_t many_files = 10 * files_of_session;

// Both ends of the session.
struct two_ends {
    explicit two_ends(loops_world& in, std::uint64_t seed)
        : before(in, 1, seed),
          again(in, 1, seed + 1000),
          is_open(in.clients_loop()),
          proves(in.clients_loop()) {
        again.signal_proof(proves);
    }
    scripted_client before;
    scripted_client again;
    script_signal is_open;
    script_signal proves;
    unsigned refused = 0;  // files that are still open after the logon that ends the session
};

io::task<void> log_off_soon(two_ends& of) {
    scripted_client& by = of.before;
    io::task<bool> joining = by.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    for (std::size_t first = 0; first != many_files; first += files_of_session) {
        io::task<unsigned> opening = open_all_alone(by, first);
        const auto refused = co_await std::move(opening);
        EXPECT_EQ(refused, 0U);
    }
    of.is_open.give();
    io::task<void> until_proof = of.proves.wait();
    co_await std::move(until_proof);
    io::task<nt_status> logging_off = by.call(command::logoff, wire::logoff_args{});
    (void)co_await std::move(logging_off);  // the other logon may have ended the session before
    by.leave();
}

io::task<void> replace_session(two_ends& of) {
    scripted_client& by = of.again;
    io::task<void> until_open = of.is_open.wait();
    co_await std::move(until_open);
    io::task<bool> logging_on = by.log_on_again(of.before.session());
    const bool has_logged_on = co_await std::move(logging_on);
    EXPECT_TRUE(has_logged_on);
    io::task<bool> connecting = by.use("files");
    const bool is_connected = co_await std::move(connecting);
    EXPECT_TRUE(is_connected);
    io::task<unsigned> opening = open_all_alone(by, many_files - files_of_session);
    const unsigned refused = co_await std::move(opening);
    of.refused = refused;
    by.leave();
}

TEST(session_on_simulated_loops, has_no_open_after_the_logon_that_names_it_while_another_loop_ends_it) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        loops_world simulated(calm_world(seed));
        std::unique_ptr<two_ends> of;
        simulated.run([&] {
            of = std::make_unique<two_ends>(simulated, seed);
            simulated.clients().spawn(log_off_soon(*of));
            simulated.clients().spawn(replace_session(*of));
        });
        EXPECT_EQ(of->refused, 0U);
        if (testing::Test::HasFailure()) return;
    }
}

// --- one client, two dialects
// -------------------------------------------------------------------------------------------------

struct two_logons {
    explicit two_logons(io::io_multiplexer& loop) : are_over(loop) {}
    script_signal are_over;
    std::vector<std::unique_ptr<scripted_client>> connections;
    unsigned ended = 0;
    unsigned successes = 0;
};

io::task<void> try_to_log_on(two_logons& of, scripted_client& by) {
    io::task<void> pausing = by.pause(30us);
    co_await std::move(pausing);
    io::task<bool> logging_on = by.log_on_again(0);
    const bool has_logged_on = co_await std::move(logging_on);
    of.successes += has_logged_on;
    if (++of.ended == 2) of.are_over.give();
    io::task<void> until_over = of.are_over.wait();
    co_await std::move(until_over);
    by.leave();
}

TEST(session_on_simulated_loops, is_refused_if_its_client_logs_on_with_another_dialect_at_the_same_time) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(100)) {
        const testing_by_simulation::replayable here(seed);
        loops_world simulated(calm_world(seed));
        std::unique_ptr<two_logons> of;
        simulated.run([&] {
            of = std::make_unique<two_logons>(simulated.clients_loop());
            for (std::uint64_t i = 0; i != 2; ++i) {
                of->connections.push_back(std::make_unique<scripted_client>(simulated, 1, seed * 2 + i));
                if (i == 1) of->connections.back()->offer_newest_dialect();
                simulated.clients().spawn(try_to_log_on(*of, *of->connections.back()));
            }
        });
        EXPECT_EQ(of->successes, 1U);
        if (testing::Test::HasFailure()) return;
    }
}

// --- LOGOFF during requests on other channels
// -------------------------------------------------------------------------------------------------

// The channels of one client, one of which logs off.
struct channels_of_client {
    explicit channels_of_client(io::io_multiplexer& loop) : is_bound(loop) {}
    script_signal is_bound;
    std::vector<std::unique_ptr<scripted_client>> all;
    std::unique_ptr<scripted_client> other;  // another client
    std::size_t bound = 0;
    wire::file_id shared{};  // an open that all channels use
    unsigned refused = 0;    // opens of another client after the LOGOFF
    unsigned answered = 0;
};

[[nodiscard]] wire::create_args directory() {
    auto how = scripted_client::for_everything();
    how.options = wire::create_options::directory_file;
    return how;
}

// Requests that take turns until the server ends the session; then the channel leaves.
io::task<void> use_channel(channels_of_client& of, std::size_t number, std::uint64_t seed) {
    scripted_client& by = *of.all[number];
    io::task<bool> joining = by.join_session_of(*of.all.front());
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    if (++of.bound == 3) of.is_bound.give();
    static constexpr std::array<std::byte, 64> data{};
    const auto element = wire::encode_lock_element(
        {.offset_bytes = 0, .length_bytes = 10, .flags = wire::lock_flags::exclusive});
    std::vector<std::uint64_t> asked;
    for (std::uint64_t i = 0; i != 40; ++i) {
        const std::uint64_t kind = (i + number + seed) % 4;
        switch (kind) {
            case 0:
                asked.push_back(by.send_create(name_of(i % files_of_session), scripted_client::alone()));
                break;
            case 1:
                asked.push_back(by.send(
                    command::write, wire::write_args{.file = of.shared, .offset_bytes = i, .data = data}));
                break;
            case 2:
                asked.push_back(by.send(
                    command::lock,
                    wire::lock_args{.file = of.shared, .elements = wire::lock_list(std::span(&element, 1))}));
                break;
            default:
                asked.push_back(by.send_create("d", directory()));
        }
        io::task<bool> sending = by.flush();
        if (not co_await std::move(sending)) break;
        if (kind != 3) continue;
        // The directory is watched until the end.
        const std::uint64_t opening = asked.back();
        io::task<nt_status> waiting = by.answer_to(opening);
        const nt_status status = co_await std::move(waiting);
        if (status == nt_status::network_name_deleted) break;
        if (status == nt_status::success)
            asked.push_back(by.send(command::change_notify,
                                    wire::change_notify_args{.output_bytes_max = 1024,
                                                             .file = by.opened_by(opening).file,
                                                             .filter = wire::completion_filter(0xfff)}));
    }
    for (const std::uint64_t each : asked) {
        io::task<nt_status> waiting = by.answer_to(each);
        const nt_status status = co_await std::move(waiting);
        if (status == nt_status::network_name_deleted) break;
        ++of.answered;
    }
    EXPECT_EQ(by.problem(), "");
    by.leave();
}

// Binds a channel while the session ends.
io::task<void> bind_late(channels_of_client& of) {
    scripted_client& by = *of.all.back();
    io::task<void> until_bound = of.is_bound.wait();
    co_await std::move(until_bound);
    io::task<void> pausing = by.pause(500us);
    co_await std::move(pausing);
    io::task<bool> joining = by.join_session_of(*of.all.front());
    (void)co_await std::move(joining);
    by.leave();
}

io::task<void> log_off_with_channels(channels_of_client& of, loops_world& simulated, std::uint64_t seed) {
    of.all.push_back(std::make_unique<scripted_client>(simulated, std::uint16_t{1}, seed * 8));
    scripted_client& by = *of.all.front();
    io::task<bool> joining = by.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    io::task<scripted_client::open_file> opening = by.create("shared");
    const scripted_client::open_file opened = co_await std::move(opening);
    of.shared = opened.file;
    // Not before: the server closes connections that have no session for long.
    for (std::size_t i = 1; i != 5; ++i)
        of.all.push_back(std::make_unique<scripted_client>(simulated, std::uint16_t{1}, seed * 8 + i));
    for (std::size_t i = 1; i != 4; ++i)
        simulated.clients().spawn(use_channel(of, i, seed));
    simulated.clients().spawn(bind_late(of));
    of.other = std::make_unique<scripted_client>(simulated, std::uint16_t{2}, seed);
    scripted_client& other = *of.other;
    io::task<bool> arriving = other.join();
    const bool has_arrived = co_await std::move(arriving);
    EXPECT_TRUE(has_arrived);
    io::task<void> until_bound = of.is_bound.wait();
    co_await std::move(until_bound);
    io::task<void> pausing = by.pause(1000us);
    co_await std::move(pausing);
    const std::uint64_t logging_off = by.send(command::logoff, wire::logoff_args{});
    io::task<nt_status> waiting = by.answer_to(logging_off);
    const auto status = co_await std::move(waiting);
    EXPECT_EQ(status, nt_status::success);
    io::task<unsigned> trying = open_all_alone(other);
    const unsigned refused = co_await std::move(trying);
    of.refused = refused;
    by.leave();
    other.leave();
}

void log_off_during_requests(const loops_world_options& how) {
    loops_world simulated(how);
    std::unique_ptr<channels_of_client> of;
    simulated.run([&] {
        of = std::make_unique<channels_of_client>(simulated.clients_loop());
        simulated.clients().spawn(log_off_with_channels(*of, simulated, how.seed));
    });
    EXPECT_EQ(of->refused, 0U) << "an open of a session that has ended excludes another";
    EXPECT_GT(of->answered, 10U);
}

TEST(session_on_simulated_loops, ends_during_create_write_lock_watch_and_bind_on_other_channels) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(40)) {
        const testing_by_simulation::replayable here(seed);
        loops_world_options how = calm_world(seed);
        how.shares.front().calls = calls_run(seed % 3);
        if (seed % 2 == 0) how.shares.front().slowness.chance = 100;
        log_off_during_requests(how);
        if (testing::Test::HasFailure()) return;
    }
}

// --- durable opens that are claimed when they expire
// -------------------------------------------------------------------------------------------------

constexpr std::uint32_t kept_ms = 1;

[[nodiscard]] wire::create_args durable() {
    auto how = scripted_client::alone();
    how.oplock_level = wire::oplock_level::batch;
    how.contexts.durable_v2.emplace();
    how.contexts.durable_v2->timeout_ms = kept_ms;
    how.contexts.durable_v2->create_guid.bytes[0] = std::byte{1};
    return how;
}

struct claims {
    explicit claims(io::io_multiplexer& loop) : is_lost(loop) {}
    script_signal is_lost;
    wire::file_id file{};
    unsigned successes = 0;
};

io::task<void> lose_durable_open(scripted_client& by, claims& of) {
    io::task<bool> joining = by.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    io::task<scripted_client::open_file> opening = by.create("f", durable());
    const scripted_client::open_file opened = co_await std::move(opening);
    of.file = opened.file;
    by.leave();
    of.is_lost.give();
}

io::task<void> claim_open(scripted_client& by, claims& of) {
    io::task<bool> joining = by.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    io::task<void> until_lost = of.is_lost.wait();
    co_await std::move(until_lost);
    io::task<void> pausing = by.pause(std::chrono::microseconds(kept_ms * 2000));
    co_await std::move(pausing);
    auto how = scripted_client::alone();
    how.oplock_level = wire::oplock_level::batch;
    how.contexts.durable_reconnect_v2.emplace();
    how.contexts.durable_reconnect_v2->file = of.file;
    how.contexts.durable_reconnect_v2->create_guid.bytes[0] = std::byte{1};
    const std::uint64_t claiming = by.send_create("f", how);
    io::task<nt_status> waiting = by.answer_to(claiming);
    const nt_status status = co_await std::move(waiting);
    of.successes += status == nt_status::success;
    EXPECT_TRUE(status == nt_status::success or status == nt_status::object_name_not_found)
        << wire::name_of(status);
    if (status == nt_status::success) {
        const std::uint64_t last = by.send_close(by.opened_by(claiming).file);
        io::task<nt_status> closed = by.answer_to(last);
        const auto status_of_close = co_await std::move(closed);
        EXPECT_EQ(status_of_close, nt_status::success);
    }
    by.leave();
}

TEST(durable_open_on_simulated_loops, is_claimed_by_one_of_two_clients_or_expires) {
    unsigned claimed = 0;
    unsigned runs = 0;
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        loops_world simulated(calm_world(seed));
        std::unique_ptr<claims> of;
        std::vector<std::unique_ptr<scripted_client>> connections;
        simulated.run([&] {
            of = std::make_unique<claims>(simulated.clients_loop());
            for (std::uint64_t i = 0; i != 3; ++i)
                connections.push_back(std::make_unique<scripted_client>(simulated, 1, seed * 4 + i));
            simulated.clients().spawn(lose_durable_open(*connections[0], *of));
            simulated.clients().spawn(claim_open(*connections[1], *of));
            simulated.clients().spawn(claim_open(*connections[2], *of));
        });
        EXPECT_LE(of->successes, 1U);
        claimed += of->successes;
        ++runs;
        if (testing::Test::HasFailure()) return;
    }
    if (testing_by_simulation::seed_to_replay()) return;
    EXPECT_GT(claimed, 5U) << "some clients came in time";
    EXPECT_LT(claimed, runs - 5) << "some came too late";
}

}  // namespace
}  // namespace sluice::smb_simulation
