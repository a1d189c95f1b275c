// A channel_storm against a running server, which channel_storm_test.py starts. Prints its
// statistics; fails if a byte was lost, reappeared, or differs from the one written last.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "sluice/io/best_available.hpp"
#include "sluice/io/task/frame_pool.hpp"
#include "sluice/io/task/sync_wait.hpp"
#include "sluice/smb/client/dial.hpp"
#include "tests/smb_client/channel_storm.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::client;  // NOLINT: the names of one component
using smb_client_testing::channel_storm;

int usage(const char* program) {
    std::fprintf(stderr, "usage: %s PORT SHARE USER PASSWORD SECONDS CHANNELS SEED signed|encrypted\n",
                 program);
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 9) return usage(argv[0]);
    const auto number = [argv](int which) { return std::strtoull(argv[which], nullptr, 10); };
    const auto address = io::socket_address::loopback_v4(static_cast<std::uint16_t>(number(1)));
    smb::auth::credentials who{.user = argv[3],
                               .domain = {},
                               .workstation = {},
                               .target_name = "cifs/127.0.0.1",
                               .hash = smb::auth::nt_hash::of_password(argv[4]).value()};
    io::frame_pool frames(4U << 20);
    const io::frame_pool::use all_tasks(frames);
    const auto loop = io::best_available().value();
    system_clock_source clock;
    system_random secrets;
    const dependencies world{.loop = *loop, .random = secrets, .clock = clock};
    const bool encrypts = std::strcmp(argv[8], "encrypted") == 0;
    channel_storm storm(
        world, [&](const connection_options& how) { return dial(world, std::span(&address, 1), how); },
        std::move(who),
        {.seed = number(7),
         .share = argv[2],
         .channels = static_cast<unsigned>(number(6)),
         .kill_every_max = std::chrono::milliseconds(50),
         .connection = {.server_name = "127.0.0.1",
                        .encryption = encrypts ? encryption::required : encryption::as_server_requires}});
    const auto end = clock.steady_now() + std::chrono::seconds(number(5));
    io::sync_wait(*loop, storm.run([&clock, end] { return clock.steady_now() >= end; }));
    const channel_storm::tally& came = storm.result();
    const std::string summary = std::to_string(came.reads) + " reads, " + std::to_string(came.writes) +
                                " writes, " + std::to_string(came.bytes >> 20) + " MiB, " +
                                std::to_string(came.kills) + " kills";
    std::fprintf(stdout, "%s\n", summary.c_str());
    if (came.problem.empty()) return 0;
    std::fprintf(stderr, "%s\n", came.problem.c_str());
    return 1;
}
