#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/file/lock.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/rpc/rpc_share_enum.hpp"
#include "tests/simulation.hpp"
#include "tests/smb_simulation/clients/scripted_client.hpp"

// Pairs of requests on different loops that are served at the same time.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using namespace std::chrono_literals;
using wire::command;
using wire::nt_status;

// Two connections with a moment that both wait for.
struct meeting {
    meeting(loops_world& in, std::uint16_t first, std::uint16_t second, std::uint64_t seed)
        : one(in, first, seed * 2),
          other(in, second, seed * 2 + 1),
          begins(in.clients_loop()),
          is_bound(in.clients_loop()) {}
    scripted_client one;
    scripted_client other;
    script_signal begins;
    script_signal is_bound;
};

using script = io::task<void> (*)(meeting& at);

// Runs a script for each of the two connections, of one client or two.
void let_meet(std::uint64_t seed, std::uint16_t second_client, script of_one, script of_other) {
    loops_world simulated(calm_world(seed));
    std::unique_ptr<meeting> at;
    simulated.run([&] {
        at = std::make_unique<meeting>(simulated, std::uint16_t{1}, second_client, seed);
        simulated.clients().spawn(of_one(*at));
        simulated.clients().spawn(of_other(*at));
    });
}

// --- TRANSCEIVE and READ on one pipe
// -------------------------------------------------------------------------------------------------

constexpr unsigned pipes = 4;

[[nodiscard]] std::uint64_t send_transaction(scripted_client& by, const wire::file_id& pipe) {
    const std::vector<std::byte> request = wire::encode_srvsvc_bind(1);
    return by.send(command::ioctl, wire::ioctl_args{.code = wire::control_code::pipe_transceive,
                                                    .file = pipe,
                                                    .output_bytes_max = 4096,
                                                    .input = bytes_view(request)});
}

io::task<void> carry_out_transactions(meeting& at) {
    io::task<bool> joining = at.one.join("IPC$");
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    at.begins.give();
    io::task<void> until_bound = at.is_bound.wait();
    co_await std::move(until_bound);
    for (unsigned i = 0; i != pipes; ++i) {
        io::task<scripted_client::open_file> opening = at.one.create("srvsvc");
        const scripted_client::open_file pipe = co_await std::move(opening);
        // The reader of the pipe is on another loop.
        at.other.send(command::read, wire::read_args{.file = pipe.file, .length_bytes = 4096});
        io::task<bool> sending = at.other.flush();
        (void)co_await std::move(sending);
        io::task<void> pausing = at.one.pause(60us);
        co_await std::move(pausing);
        io::task<nt_status> transaction = at.one.answer_to(send_transaction(at.one, pipe.file));
        const nt_status status = co_await std::move(transaction);
        EXPECT_EQ(status, nt_status::success) << wire::name_of(status);
        const auto reply = wire::decode_ioctl_reply(wire::message_view::of(at.one.last_message()).value());
        EXPECT_TRUE(reply and not reply->output.empty());
        io::task<nt_status> ending = at.one.answer_to(at.one.send_close(pipe.file));
        (void)co_await std::move(ending);  // and of the READ
    }
    at.other.fall_silent();
    at.one.leave();
}

io::task<void> read_pipes(meeting& at) {
    io::task<void> until_joined = at.begins.wait();
    co_await std::move(until_joined);
    io::task<bool> binding = at.other.join_session_of(at.one);
    const bool is_bound = co_await std::move(binding);
    EXPECT_TRUE(is_bound);
    at.is_bound.give();
    io::task<void> listening = at.other.listen();
    co_await std::move(listening);
}

TEST(pipe_on_simulated_loops, gives_the_answer_of_a_transaction_to_that_and_not_to_a_read_on_another_loop) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(30)) {
        const testing_by_simulation::replayable here(seed);
        let_meet(seed, 1, carry_out_transactions, read_pipes);
        if (testing::Test::HasFailure()) return;
    }
}

// --- CANCEL and UNLOCK of a LOCK that waits
// -------------------------------------------------------------------------------------------------

[[nodiscard]] std::uint64_t send_lock(scripted_client& by, const wire::file_id& file, wire::lock_flags how) {
    const auto element = wire::encode_lock_element({.offset_bytes = 0, .length_bytes = 10, .flags = how});
    return by.send(command::lock,
                   wire::lock_args{.file = file, .elements = wire::lock_list(std::span(&element, 1))});
}

constexpr auto exclusively = wire::lock_flags::exclusive;
constexpr auto at_once = wire::lock_flags::exclusive | wire::lock_flags::fail_immediately;

io::task<void> hold_range(meeting& at) {
    io::task<bool> joining = at.one.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    io::task<scripted_client::open_file> opening = at.one.create("f");
    const scripted_client::open_file file = co_await std::move(opening);
    io::task<nt_status> locking = at.one.answer_to(send_lock(at.one, file.file, at_once));
    (void)co_await std::move(locking);
    at.begins.give();
    io::task<void> pausing = at.one.pause(120us);
    co_await std::move(pausing);
    io::task<nt_status> unlocking = at.one.answer_to(send_lock(at.one, file.file, wire::lock_flags::unlock));
    const nt_status unlocked = co_await std::move(unlocking);
    EXPECT_EQ(unlocked, nt_status::success);
    at.one.leave();
}

unsigned locks_granted = 0;
unsigned locks_cancelled = 0;

// Whatever comes first, the reply states whether the lock is held.
io::task<void> lock_and_cancel(meeting& at) {
    io::task<bool> joining = at.other.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    io::task<scripted_client::open_file> opening = at.other.create("f");
    const scripted_client::open_file file = co_await std::move(opening);
    io::task<scripted_client::open_file> opening_again = at.other.create("f");
    const scripted_client::open_file second = co_await std::move(opening_again);
    io::task<void> until_locked = at.begins.wait();
    co_await std::move(until_locked);
    const std::uint64_t locking = send_lock(at.other, file.file, exclusively);
    io::task<bool> sending = at.other.flush();
    (void)co_await std::move(sending);
    io::task<void> pausing = at.other.pause(120us);
    co_await std::move(pausing);
    at.other.send_cancel(locking);
    io::task<nt_status> waiting = at.other.answer_to(locking);
    const nt_status outcome = co_await std::move(waiting);
    const bool is_held = outcome == nt_status::success;
    EXPECT_TRUE(is_held or outcome == nt_status::cancelled) << wire::name_of(outcome);
    (is_held ? locks_granted : locks_cancelled) += 1;
    io::task<nt_status> unlocking =
        at.other.answer_to(send_lock(at.other, file.file, wire::lock_flags::unlock));
    const nt_status unlocked = co_await std::move(unlocking);
    EXPECT_EQ(unlocked, is_held ? nt_status::success : nt_status::range_not_locked);
    // Nothing holds the range any more, once the holder has unlocked it.
    io::task<nt_status> locking_again = at.other.answer_to(send_lock(at.other, second.file, exclusively));
    const nt_status again = co_await std::move(locking_again);
    EXPECT_EQ(again, nt_status::success);
    at.other.leave();
}

TEST(lock_on_simulated_loops, is_held_or_cancelled_as_its_reply_says_whenever_the_cancel_comes) {
    locks_granted = locks_cancelled = 0;
    for (const std::uint64_t seed : testing_by_simulation::seeds(150)) {
        const testing_by_simulation::replayable here(seed);
        let_meet(seed, 2, hold_range, lock_and_cancel);
        if (testing::Test::HasFailure()) return;
    }
    if (testing_by_simulation::seed_to_replay()) return;
    EXPECT_GT(locks_granted, 20U);
    EXPECT_GT(locks_cancelled, 20U);
}

}  // namespace
}  // namespace sluice::smb_simulation
