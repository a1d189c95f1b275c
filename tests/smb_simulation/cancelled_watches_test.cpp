#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sluice/smb/wire/file/change_notify.hpp"
#include "tests/simulation.hpp"
#include "tests/smb_simulation/clients/scripted_client.hpp"

// CHANGE_NOTIFY requests that are cancelled while a worker begins the watch of their open
// ([MS-FSA] 2.1.5.11): the changes after them are collected for the next request.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using namespace std::chrono_literals;
using wire::command;
using wire::completion_filter;
using wire::nt_status;

[[nodiscard]] wire::create_args directory() {
    auto how = scripted_client::for_everything();
    how.options = wire::create_options::directory_file;
    return how;
}

std::uint64_t send_watch(scripted_client& by, const wire::file_id& of, completion_filter filter,
                         std::uint32_t output_bytes_max = 1000) {
    return by.send(command::change_notify,
                   wire::change_notify_args{.flags = wire::change_notify_flags::watch_tree,
                                            .output_bytes_max = output_bytes_max,
                                            .file = of,
                                            .filter = filter});
}

using watch_script = io::task<void> (*)(scripted_client& by, wire::file_id watched);

// Opens a directory and hands it to the script.
io::task<void> watch_directory(scripted_client& by, watch_script script) {
    io::task<bool> joining = by.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    io::task<scripted_client::open_file> opening = by.create("d", directory());
    const scripted_client::open_file opened = co_await std::move(opening);
    io::task<void> running = script(by, opened.file);
    co_await std::move(running);
    EXPECT_EQ(by.problem(), "");
    by.leave();
}

// Creates files in the directory, and waits until their changes were delivered.
io::task<void> change_directory(scripted_client& by, unsigned files) {
    for (unsigned i = 0; i != files; ++i) {
        io::task<scripted_client::open_file> creating = by.create("d\\new" + std::to_string(i));
        (void)co_await std::move(creating);
    }
    io::task<void> until_delivered = by.stay(10s);
    co_await std::move(until_delivered);
}

// The answer of a request that the end of the open completes if it has no changes.
io::task<nt_status> answer_before_close(scripted_client& by, std::uint64_t watching, wire::file_id watched) {
    const std::uint64_t last = by.send_close(watched);
    io::task<nt_status> closed = by.answer_to(last);
    (void)co_await std::move(closed);
    io::task<nt_status> waiting = by.answer_to(watching);
    co_return co_await std::move(waiting);
}

// Calls of the share run on few workers and may be slow, so that a CANCEL comes before, during and
// after the call that begins the watch.
void run_on_workers(watch_script script) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(60)) {
        const testing_by_simulation::replayable here(seed);
        loops_world_options how = calm_world(seed);
        how.shares.front().calls = calls_run::on_workers;
        how.shares.front().workers = 1 + seed % 3;
        if (seed % 2 == 0) how.shares.front().slowness = {.chance = 300, .longest = 50ms};
        loops_world simulated(how);
        std::unique_ptr<scripted_client> client;
        simulated.run([&] {
            client = std::make_unique<scripted_client>(simulated, std::uint16_t{1}, seed);
            simulated.clients().spawn(watch_directory(*client, script));
        });
        if (testing::Test::HasFailure()) return;
    }
}

// Cancels a request to watch, which ends by that.
io::task<void> cancel(scripted_client& by, std::uint64_t watching) {
    by.send_cancel(watching);
    io::task<nt_status> cancelling = by.answer_to(watching);
    const nt_status outcome = co_await std::move(cancelling);
    EXPECT_EQ(outcome, nt_status::cancelled) << wire::name_of(outcome);
}

io::task<void> cancel_first_watch(scripted_client& by, wire::file_id watched) {
    const std::uint64_t watching = send_watch(by, watched, completion_filter::file_name);
    io::task<void> cancelling = cancel(by, watching);
    co_await std::move(cancelling);
    io::task<void> until_changed = change_directory(by, 1);
    co_await std::move(until_changed);
    const std::uint64_t again = send_watch(by, watched, completion_filter::file_name);
    io::task<nt_status> waiting = answer_before_close(by, again, watched);
    const nt_status status = co_await std::move(waiting);
    EXPECT_EQ(status, nt_status::success) << wire::name_of(status);
}

TEST(change_notify_on_simulated_loops, collects_changes_from_the_first_request_on_if_that_is_cancelled) {
    run_on_workers(cancel_first_watch);
}

// As smb2.notify.overflow of smbtorture.
io::task<void> overflow_cancelled_watch(scripted_client& by, wire::file_id watched) {
    const std::uint64_t watching = send_watch(by, watched, completion_filter::file_name, 16);
    io::task<void> cancelling = cancel(by, watching);
    co_await std::move(cancelling);
    io::task<void> until_changed = change_directory(by, 3);
    co_await std::move(until_changed);
    const std::uint64_t again = send_watch(by, watched, completion_filter::file_name);
    io::task<nt_status> waiting = answer_before_close(by, again, watched);
    const nt_status status = co_await std::move(waiting);
    EXPECT_EQ(status, nt_status::notify_enum_dir) << wire::name_of(status);
}

TEST(change_notify_on_simulated_loops, keeps_the_buffer_size_of_the_first_request_if_that_is_cancelled) {
    run_on_workers(overflow_cancelled_watch);
}

// The second of two requests does not begin a watch of its own, with another filter.
io::task<void> cancel_one_of_two(scripted_client& by, wire::file_id watched, bool is_first) {
    const std::uint64_t first = send_watch(by, watched, completion_filter::file_name);
    const std::uint64_t second = send_watch(by, watched, completion_filter::directory_name);
    io::task<void> cancelling = cancel(by, is_first ? first : second);
    co_await std::move(cancelling);
    io::task<void> until_changed = change_directory(by, 1);
    co_await std::move(until_changed);
    io::task<nt_status> waiting = answer_before_close(by, is_first ? second : first, watched);
    const nt_status status = co_await std::move(waiting);
    EXPECT_EQ(status, nt_status::success) << wire::name_of(status);
}

TEST(change_notify_on_simulated_loops, waits_for_the_watch_that_a_cancelled_request_begins) {
    run_on_workers(
        [](scripted_client& by, wire::file_id watched) { return cancel_one_of_two(by, watched, true); });
}

TEST(change_notify_on_simulated_loops, is_answered_if_a_request_that_waits_for_its_watch_is_cancelled) {
    run_on_workers(
        [](scripted_client& by, wire::file_id watched) { return cancel_one_of_two(by, watched, false); });
}

// The open ends while a worker may still be beginning the watch.
io::task<void> cancel_and_close(scripted_client& by, wire::file_id watched) {
    const std::uint64_t watching = send_watch(by, watched, completion_filter::file_name);
    by.send_cancel(watching);
    const std::uint64_t last = by.send_close(watched);
    io::task<nt_status> closed = by.answer_to(last);
    const nt_status status = co_await std::move(closed);
    EXPECT_EQ(status, nt_status::success);
    io::task<nt_status> waiting = by.answer_to(watching);
    const nt_status outcome = co_await std::move(waiting);
    EXPECT_TRUE(outcome == nt_status::cancelled or outcome == nt_status::notify_cleanup)
        << wire::name_of(outcome);
}

TEST(change_notify_on_simulated_loops, ends_if_its_open_is_closed_after_a_cancel) {
    run_on_workers(cancel_and_close);
}

}  // namespace
}  // namespace sluice::smb_simulation
