#pragma once

#include "sluice/smb/client/directory.hpp"
#include "sluice/smb/client/remote_file.hpp"
#include "sluice/smb/client/session.hpp"
#include "sluice/smb/client/tree.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "tests/smb_simulation/world/world.hpp"

namespace sluice::smb_client_testing {

/// Tree connections that the server allows a session.
inline constexpr std::size_t trees_per_session_max = smb::server::limits::trees_per_session_max;

using smb::client::outcome;

/// The real client against the real server, in simulated time.
struct rig : smb_simulation::world {
    explicit rig(void (*adjust)(smb::server::server_configuration&) = nullptr, std::uint64_t seed = 1,
                 const io::simulation_options& options = {.seed = 1})
        : world(options, seed, adjust), client_secrets(seed + 1) {}

    ~rig() {
        if (not is_stopped_) stop();
    }
    void stop() {
        is_stopped_ = true;
        world::stop();
    }

    [[nodiscard]] smb::client::dependencies dependencies() { return {*loop, client_secrets, clock}; }

    [[nodiscard]] static smb::auth::credentials who(const char* password = "p") {
        return {.user = "u",
                .domain = {},
                .workstation = {},
                .target_name = "cifs/server",
                .hash = smb::auth::nt_hash::of_password(password).value()};
    }

    /// Runs a task to its end, which it must reach.
    template <class T>
    [[nodiscard]] T wait_for(io::task<T> what) {
        std::optional<T> outcome;
        io::task_group running(*loop);
        running.spawn(keep(std::move(what), outcome));
        while (not outcome and loop->run().value_or(0) > 0) {}
        if (not outcome) {
            ADD_FAILURE() << "the task does not end: " << loop->stalled();
            running.cancel();
            while (loop->run().value_or(0) > 0) {}
        }
        return std::move(*outcome);
    }
    void wait_for(io::task<void> what) { (void)wait_for(whole(std::move(what))); }

    predictable_secrets_for_simulation client_secrets;

private:
    bool is_stopped_ = false;

    template <class T>
    static io::task<void> keep(io::task<T> what, std::optional<T>& outcome) {
        outcome.emplace(co_await std::move(what));
    }
    static io::task<bool> whole(io::task<void> what) {
        co_await std::move(what);
        co_return true;
    }
};

/// A client that has logged on and connected to the share.
struct logged_on {
    explicit logged_on(rig& in, smb::client::connection_options options = {})
        : logged_on(in, std::move(options), in.connect()) {}
    logged_on(rig& in, smb::client::connection_options options, io::socket_handle over) : where(in) {
        if (options.server_name.empty()) options.server_name = "server";
        auto opened = in.wait_for(smb::client::connection::open(in.dependencies(), std::move(over), options));
        if (not opened) {
            error = opened.error();
            return;
        }
        connection = opened->release();
        auto session_made = in.wait_for(smb::client::session::log_on(*connection, rig::who()));
        if (not session_made) {
            error = session_made.error();
            return;
        }
        session = session_made->release();
        auto tree_made = in.wait_for(smb::client::tree::connect(*session, "files"));
        if (not tree_made) {
            error = tree_made.error();
            return;
        }
        tree = tree_made->release();
    }
    ~logged_on() {
        if (connection) where.wait_for(connection->close());
    }

    rig& where;
    std::unique_ptr<smb::client::connection> connection;
    std::unique_ptr<smb::client::session> session;
    std::unique_ptr<smb::client::tree> tree;
    std::optional<smb::client::client_error> error;
};

}  // namespace sluice::smb_client_testing
