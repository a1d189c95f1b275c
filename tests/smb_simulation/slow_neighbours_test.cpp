#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "sluice/smb/wire/file/flush.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/write.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "tests/simulation.hpp"
#include "tests/smb_simulation/clients/scripted_client.hpp"

// Clients of a file system that hangs, and clients that read nothing, do not delay others.

namespace sluice::smb_simulation {
namespace {

using namespace smb;  // NOLINT: the names of one protocol
using namespace std::chrono_literals;
using wire::command;
using wire::file_information_class;
using wire::nt_status;

// Simulated time passes only by steps of the loops, and while all of them wait. So a reply is late
// if its request has waited for anything.
constexpr auto reply_time_max = 20ms;

/// Carries out one request of each kind after the other, and expects that no reply is late. Counts
/// the rounds.
class prompt_client {
public:
    prompt_client(loops_world& in, std::uint16_t number)
        : world_(in), client_(in, number), prefix_(std::to_string(number) + " ") {}

    [[nodiscard]] io::task<void> live(std::string share, unsigned rounds) {
        io::task<bool> joining = client_.join(share);
        const bool has_joined = co_await std::move(joining);
        EXPECT_TRUE(has_joined);
        for (unsigned i = 0; i != rounds and not testing::Test::HasFailure(); ++i) {
            io::task<void> doing = do_round(prefix_ + std::to_string(i));
            co_await std::move(doing);
            io::task<void> pausing = client_.pause(1000us);
            co_await std::move(pausing);
            ++rounds_;
        }
        client_.leave();
    }
    [[nodiscard]] unsigned rounds() const noexcept { return rounds_; }

private:
    static constexpr unsigned steps = 9;

    [[nodiscard]] io::task<void> do_round(std::string name) {
        wire::file_id file{};
        for (unsigned step = 0; step != steps; ++step) {
            const std::uint64_t asked = send_step(step, file, name);
            io::task<void> answered = expect_soon(asked);
            co_await std::move(answered);
            if (testing::Test::HasFailure()) co_return;
            if (step == 0) file = client_.opened_by(asked).file;
        }
    }
    std::uint64_t send_step(unsigned step, const wire::file_id& file, const std::string& name) {
        static constexpr std::array<std::byte, 100> data{};
        switch (step) {
            case 0:
                return client_.send_create(name);
            case 1:
                return client_.send(command::echo, wire::echo_args{});
            case 2:
                return client_.send(command::write, wire::write_args{.file = file, .data = data});
            case 3:
                return client_.send(command::read, wire::read_args{.file = file, .length_bytes = 1});
            case 4:
                return client_.send(command::flush, wire::flush_args{.file = file});
            case 5:
                return client_.send(command::query_info,
                                    wire::query_info_args{.information_class = static_cast<std::uint8_t>(
                                                              file_information_class::all),
                                                          .output_bytes_max = 4096,
                                                          .file = file});
            case 6:
                return client_.send_change(file, file_information_class::rename,
                                           wire::rename_information{.target = name + " renamed"});
            case 7:
                return client_.send_change(file, file_information_class::disposition,
                                           wire::disposition_information{.delete_on_close = true});
            default:
                return client_.send_close(file);
        }
    }
    [[nodiscard]] io::task<void> expect_soon(std::uint64_t asked) {
        const auto began = world_.clock().steady_now();
        io::task<nt_status> waiting = client_.answer_to(asked);
        const nt_status status = co_await std::move(waiting);
        EXPECT_FALSE(wire::is_error(status)) << asked << ": " << wire::name_of(status);
        EXPECT_LT(world_.clock().steady_now() - began, reply_time_max);
    }

    loops_world& world_;
    scripted_client client_;
    std::string prefix_;  // its files have names that begin with it
    unsigned rounds_ = 0;
};

// --- file systems that hang
// -------------------------------------------------------------------------------------------------

// Opens files, and leaves after a minute, whether there are replies or not.
io::task<void> use_hung_share(scripted_client& by, std::string share, unsigned& answered) {
    io::task<bool> joining = by.join(share);
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    std::vector<std::uint64_t> asked;
    for (unsigned i = 0; i != 12; ++i)
        asked.push_back(by.send_create("hung " + std::to_string(i)));
    io::task<bool> sending = by.flush();
    (void)co_await std::move(sending);
    io::task<void> waiting = by.stay(60s);
    co_await std::move(waiting);
    for (const std::uint64_t each : asked)
        answered += by.has_answer_to(each);
    by.leave();
}

void use_hung_shares(std::uint64_t seed, std::size_t count) {
    loops_world_options how = calm_world(seed);
    how.shares.push_back({.name = "workers", .calls = calls_run::on_workers});
    for (std::size_t i = 0; i != count; ++i)
        how.shares.push_back({.name = "hung" + std::to_string(i),
                              .calls = calls_run::on_workers,
                              .slowness = {.chance = 1000, .hung = 1000},
                              .workers = 8});
    loops_world simulated(how);
    std::vector<std::unique_ptr<scripted_client>> hung;
    std::vector<std::unique_ptr<prompt_client>> prompt;
    unsigned answered = 0;
    simulated.run([&] {
        for (std::size_t i = 0; i != count; ++i) {
            const auto number = static_cast<std::uint16_t>(100 + i);
            hung.push_back(std::make_unique<scripted_client>(simulated, number, seed));
            simulated.clients().spawn(use_hung_share(*hung.back(), "hung" + std::to_string(i), answered));
        }
        for (const char* const share : {"files", "workers"})
            for (std::uint16_t i = 0; i != 2; ++i) {
                const auto number = static_cast<std::uint16_t>(prompt.size() + 1);
                prompt.push_back(std::make_unique<prompt_client>(simulated, number));
                simulated.clients().spawn(prompt.back()->live(share, 20));
            }
    });
    EXPECT_EQ(answered, 0U) << "calls that hang returned";
    for (const auto& each : prompt)
        EXPECT_EQ(each->rounds(), 20U);
}

TEST(share_that_hangs_on_simulated_loops, delays_no_client_of_another_share) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(6)) {
        const testing_by_simulation::replayable here(seed);
        use_hung_shares(seed, 1);
        if (testing::Test::HasFailure()) return;
    }
}

TEST(share_that_hangs_on_simulated_loops, delays_no_client_of_another_share_if_there_are_eight_of_them) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(3)) {
        const testing_by_simulation::replayable here(seed);
        use_hung_shares(seed, 8);
        if (testing::Test::HasFailure()) return;
    }
}

// --- a client that reads nothing
// -------------------------------------------------------------------------------------------------

// Caches a file, asks for many bytes, and reads none of them, so that the break of its cache cannot
// be sent either.
io::task<void> cache_and_read_nothing(scripted_client& by, script_signal& is_silent) {
    io::task<bool> joining = by.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    auto how = scripted_client::for_everything();
    how.oplock_level = wire::oplock_level::batch;
    io::task<scripted_client::open_file> opening = by.create("cached", how);
    const scripted_client::open_file cached = co_await std::move(opening);
    EXPECT_EQ(cached.oplock, wire::oplock_level::batch);
    io::task<scripted_client::open_file> opening_large = by.create("large");
    const scripted_client::open_file large = co_await std::move(opening_large);
    io::task<nt_status> growing =
        by.answer_to(by.send_change(large.file, file_information_class::end_of_file,
                                    wire::end_of_file_information{.end_of_file = 1U << 20}));
    const nt_status grown = co_await std::move(growing);
    EXPECT_EQ(grown, nt_status::success);
    for (unsigned i = 0; i != 24; ++i)
        by.send(command::read, wire::read_args{.file = large.file, .length_bytes = 65536});
    io::task<bool> sending = by.flush();
    (void)co_await std::move(sending);
    io::task<void> filling = by.stay(1s);  // the socket, with replies
    co_await std::move(filling);
    is_silent.give();
    io::task<void> waiting = by.stay(60s);
    co_await std::move(waiting);
    EXPECT_EQ(by.breaks(), 0U) << "it has read nothing";
    by.leave();
}

// Opens the cached file, which takes until the server gives up to wait for the client.
io::task<void> open_cached_file(loops_world& in, scripted_client& by, script_signal& is_silent) {
    io::task<bool> joining = by.join();
    const bool has_joined = co_await std::move(joining);
    EXPECT_TRUE(has_joined);
    io::task<void> until_silent = is_silent.wait();
    co_await std::move(until_silent);
    const auto began = in.clock().steady_now();
    io::task<scripted_client::open_file> opening = by.create("cached");
    (void)co_await std::move(opening);
    EXPECT_GT(in.clock().steady_now() - began, 30s);
    EXPECT_LT(in.clock().steady_now() - began, 40s);
    by.leave();
}

io::task<void> live_after(prompt_client& one, script_signal& is_silent) {
    io::task<void> until_silent = is_silent.wait();
    co_await std::move(until_silent);
    io::task<void> living = one.live("files", 20);
    co_await std::move(living);
}

TEST(client_on_simulated_loops, that_reads_nothing_delays_others_only_at_the_file_that_it_caches) {
    for (const std::uint64_t seed : testing_by_simulation::seeds(6)) {
        const testing_by_simulation::replayable here(seed);
        loops_world simulated(calm_world(seed));
        std::unique_ptr<scripted_client> silent;
        std::unique_ptr<scripted_client> waiting;
        std::vector<std::unique_ptr<prompt_client>> prompt;
        std::unique_ptr<script_signal> is_silent;
        simulated.run([&] {
            is_silent = std::make_unique<script_signal>(simulated.clients_loop());
            silent = std::make_unique<scripted_client>(simulated, 100, seed);
            waiting = std::make_unique<scripted_client>(simulated, 101, seed);
            simulated.clients().spawn(cache_and_read_nothing(*silent, *is_silent));
            simulated.clients().spawn(open_cached_file(simulated, *waiting, *is_silent));
            for (std::uint16_t i = 0; i != 3; ++i) {
                prompt.push_back(std::make_unique<prompt_client>(simulated, i + 1));
                simulated.clients().spawn(live_after(*prompt.back(), *is_silent));
            }
        });
        for (const auto& each : prompt)
            EXPECT_EQ(each->rounds(), 20U);
        if (testing::Test::HasFailure()) return;
    }
}

}  // namespace
}  // namespace sluice::smb_simulation
