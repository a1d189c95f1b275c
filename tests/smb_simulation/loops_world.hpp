#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sluice/io/task/task_group.hpp"
#include "tests/smb_simulation/loop_scheduler.hpp"
#include "tests/smb_simulation/slow_volume.hpp"
#include "tests/smb_simulation/world.hpp"

namespace sluice::smb_simulation {

struct loops_world_options {
    std::uint64_t seed = 1;
    std::size_t loops = 3;
    io::simulation_options network{};  // each loop gets its own seed
    slow_calls_options slowness{};     // the duration of calls of the volume
};

/// A server on several simulated loops, each on its own thread, and clients on another loop: one
/// loop_scheduler runs all of them. The share "files" is in memory, the user is u with password p.
///
/// run() does everything. Thread safety: `start_clients` and the clients run on the clients' loop.
class loops_world {
public:
    explicit loops_world(const loops_world_options& how);
    loops_world(const loops_world&) = delete;
    loops_world& operator=(const loops_world&) = delete;

    /// Starts clients on their loop, runs everything until no client is left, and stops the server.
    /// Expects that each client ends, and that the server holds no resources.
    void run(std::function<void()> start_clients);

    [[nodiscard]] io::io_multiplexer& clients_loop() noexcept { return *clients_loop_; }
    [[nodiscard]] io::task_group& clients() noexcept { return *clients_; }
    [[nodiscard]] simulated_clock& clock() noexcept { return clock_; }
    [[nodiscard]] loop_scheduler& scheduler() noexcept { return scheduler_; }
    [[nodiscard]] smb::server::smb_server& server() noexcept { return *server_; }

    /// Returns the client's end of a new connection of the client with that number. Call it on the
    /// clients' loop.
    [[nodiscard]] io::socket_handle connect(std::uint16_t client);

    /// Returns a hash of all events on all loops.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_; }
    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

private:
    [[nodiscard]] io::simulation_options options_of(std::size_t loop) const;
    void run_loop(io::simulated_multiplexer& loop);
    void run_first(const std::function<void()>& start_clients);
    void run_clients(const std::function<void()>& start_clients);
    void make_server();
    [[nodiscard]] static io::task<void> stop_when(smb::server::event<bool>& ended,
                                                  smb::server::smb_server& server, bool& is_done);

    loops_world_options how_;
    simulated_clock clock_;
    loop_scheduler scheduler_;
    nonce_registry nonces_;
    predictable_secrets_for_simulation secrets_;
    simulated_accounts accounts_;
    silent_log log_;
    std::vector<std::unique_ptr<io::simulated_multiplexer>> loops_;
    // All loops except the first.
    std::vector<std::optional<io::io_multiplexer::work_guard>> guards_;
    std::unique_ptr<io::simulated_multiplexer> clients_loop_;
    std::unique_ptr<io::task_group> clients_;
    std::unique_ptr<smb::server::smb_server> server_;
    std::unique_ptr<smb::server::event<bool>> clients_ended_;
    std::uint64_t digest_ = 0;
    std::uint64_t events_ = 0;
};

}  // namespace sluice::smb_simulation
