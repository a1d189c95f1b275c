#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/io/task/task_group.hpp"
#include "tests/smb_simulation/world/loop_scheduler.hpp"
#include "tests/smb_simulation/world/simulated_workers.hpp"
#include "tests/smb_simulation/world/slow_volume.hpp"
#include "tests/smb_simulation/world/world.hpp"

namespace sluice::smb_simulation {

/// Where the calls of a simulated file system run.
enum class calls_run : std::uint8_t {
    on_loops,    // always inline
    on_workers,  // never inline
    on_either,   // inline, until a call is drawn that has blocked; again after prompt calls
};

/// A share in memory, with a failure domain of its own.
struct simulated_share {
    std::string name = "files";
    calls_run calls = calls_run::on_loops;
    slow_calls_options slowness{};  // the duration of calls of the volume
    std::size_t workers = 3;
};

struct loops_world_options {
    std::uint64_t seed = 1;
    std::size_t loops = 3;
    io::simulation_options network{};  // each loop gets its own seed
    std::vector<simulated_share> shares = {{}};
};

/// Without delays, so that all messages of a run meet in the server.
[[nodiscard]] inline loops_world_options calm_world(std::uint64_t seed) {
    return {.seed = seed, .network = {.seed = seed, .speculation = 1000}};
}

/// A server on several simulated loops, each on its own thread, and clients on another loop: one
/// loop_scheduler runs all of them. The shares are in memory, the user is u with password p.
/// Calls that are offloaded run on simulated_workers of their share; those that hang return when
/// the server stops.
///
/// run() does everything. Thread safety: `start_clients` and the clients run on the clients' loop.
class loops_world {
public:
    explicit loops_world(const loops_world_options& how);
    loops_world(const loops_world&) = delete;
    loops_world& operator=(const loops_world&) = delete;

    /// Starts clients on their loop, runs everything until no client is left, and stops the server.
    /// Expects that each client ends, that no loop makes a call of a domain that is never inline,
    /// and that the server holds no resources.
    void run(std::function<void()> start_clients);

    [[nodiscard]] io::io_multiplexer& clients_loop() noexcept { return *clients_loop_; }
    [[nodiscard]] io::task_group& clients() noexcept { return *clients_; }
    [[nodiscard]] simulated_clock& clock() noexcept { return clock_; }
    [[nodiscard]] loop_scheduler& scheduler() noexcept { return scheduler_; }
    [[nodiscard]] smb::server::smb_server& server() noexcept { return *server_; }

    /// Returns the client's end of a new connection of the client with that number. Call it on the
    /// clients' loop.
    [[nodiscard]] io::socket_handle connect(std::uint16_t client);
    /// Replaces all shares by others of the same volumes, which differ from the earlier ones if
    /// `changes`, as a reload of the configuration does. Call it on the clients' loop.
    void reload_shares(bool changes);

    /// Returns how many calls the workers of all shares have carried out.
    [[nodiscard]] std::uint64_t offloaded_calls() const noexcept;

    /// Returns a hash of all events on all loops.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

private:
    [[nodiscard]] io::simulation_options options_of(std::size_t loop) const;
    void run_loop(io::simulated_multiplexer& loop);
    void wait_for_workers();
    void run_first(const std::function<void()>& start_clients);
    void run_clients(const std::function<void()>& start_clients);
    void make_server();
    [[nodiscard]] smb::server::share_configuration make_share(const simulated_share& how);
    [[nodiscard]] std::shared_ptr<vfs::fs_domain> make_domain(const simulated_share& how,
                                                              simulated_workers& by);
    void replace_shares(bool changes);
    void take_inline_call(const simulated_share& of, vfs::fs_domain& domain);
    [[nodiscard]] io::task<void> stop_when(smb::server::one_shot_event<bool>& ended,
                                           smb::server::smb_server& server, bool& is_done);

    loops_world_options how_;
    simulated_clock clock_;
    simulated_clock measured_;  // for the domains: no call takes time, so that each is prompt
    loop_scheduler scheduler_;
    seeded_random blocked_calls_;
    nonce_registry nonces_;
    predictable_secrets_for_simulation secrets_;
    simulated_accounts accounts_;
    silent_log log_;
    std::vector<std::unique_ptr<io::simulated_multiplexer>> loops_;
    // All loops except the first.
    std::vector<std::optional<io::io_multiplexer::work_guard>> guards_;
    std::unique_ptr<io::simulated_multiplexer> clients_loop_;
    std::unique_ptr<io::task_group> clients_;
    std::vector<std::unique_ptr<simulated_workers>> workers_;  // for each share with a volume
    bool is_serving_ = false;
    bool is_hang_over_ = false;
    unsigned reloads_ = 0;
    std::unique_ptr<smb::server::smb_server> server_;
    std::unique_ptr<smb::server::one_shot_event<bool>> clients_ended_;
    std::uint64_t digest_ = 0;
    std::uint64_t events_ = 0;
};

}  // namespace sluice::smb_simulation
