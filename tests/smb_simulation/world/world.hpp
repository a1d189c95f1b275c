#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/io/task/task_group.hpp"
#include "sluice/smb/auth/cipher/nonce_observer.hpp"
#include "sluice/smb/server/report/silent_log_testing.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/session/user_database.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

namespace sluice::smb_simulation {

/// A log that discards all events.
using smb::server::silent_log;

/// A log that keeps the warnings. Thread safety: any thread.
class log_of_warnings final : public smb::server::event_log {
public:
    void write(smb::server::event_severity severity, std::string_view what,
               std::initializer_list<smb::server::event_field> fields) noexcept override {
        if (severity != smb::server::event_severity::warning) return;
        std::string line(what);
        for (const smb::server::event_field& one : fields)
            line += ' ' + std::string(one.name) + '=' + std::string(one.value);
        const std::lock_guard held(mutex_);
        lines_.push_back(std::move(line));
    }
    /// Returns the lines since the last call.
    [[nodiscard]] std::vector<std::string> take() {
        const std::lock_guard held(mutex_);
        return std::exchange(lines_, {});
    }

private:
    std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// The users of a simulation, one of whom may be treated as a guest.
class simulated_accounts final : public smb::auth::account_source {
public:
    std::optional<smb::auth::account> find(std::string_view user, std::string_view domain) noexcept override {
        auto found = users.find(user, domain);
        if (found) found->is_guest = not guest.empty() and equal_ignoring_case(user, guest);
        return found;
    }

    std::vector<std::string> found_names() const override { return users.found_names(); }
    bool is_same(const account_name& one, const account_name& other) const noexcept override {
        return users.is_same(one, other);
    }

    smb::server::user_database users;
    std::string guest;  // empty: none
};

/// Expects that no nonce is used twice under one key, by server or clients. Only one at a time: a
/// second one ends the check, because its world may have the same secrets. Thread safety: any
/// thread.
class nonce_registry final : public smb::auth::nonce_observer {
public:
    nonce_registry() { smb::auth::set_nonce_observer(count_++ == 0 ? this : nullptr); }
    ~nonce_registry() {
        smb::auth::set_nonce_observer(nullptr);
        --count_;
    }
    nonce_registry(const nonce_registry&) = delete;
    nonce_registry& operator=(const nonce_registry&) = delete;

    /// Ignores AES-GMAC nonces of clients from now on, because one client repeats its nonces.
    void ignore_clients() noexcept { ignores_clients_ = true; }
    void used(const smb::auth::key_fingerprint& key, bytes_view nonce) noexcept override {
        // [MS-SMB2] 3.1.4.1: the message ID, and a bit for the server.
        constexpr std::size_t sender_offset = 8;
        const bool is_servers = (nonce[sender_offset] & std::byte{1}) != std::byte{0};
        if (ignores_clients_ and not is_servers) return;
        const std::lock_guard held(mutex_);
        std::vector<std::byte> both(key.begin(), key.end());
        both.insert(both.end(), nonce.begin(), nonce.end());
        EXPECT_TRUE(used_.insert(std::move(both)).second) << "a nonce is used a second time";
    }
    [[nodiscard]] std::size_t size() const {
        const std::lock_guard held(mutex_);
        return used_.size();
    }

private:
    static inline int count_ = 0;
    bool ignores_clients_ = false;
    mutable std::mutex mutex_;
    std::set<std::vector<std::byte>> used_;
};

/// A server with one share, "files", in memory, and one user, u, in simulated time. `adjust`, if
/// any, makes final changes to its configuration; `peers`, if any, serve the same files;
/// `watchdog`, if any, outlives it.
struct world {
    world(const io::simulation_options& options, std::uint64_t seed,
          void (*adjust)(smb::server::server_configuration&) = nullptr,
          smb::server::peer_servers* peers = nullptr, smb::server::loop_watchdog* watchdog = nullptr)
        : loop(io::make_simulated_multiplexer(options).value()),
          clock(loop->clock_of_simulation()),
          secrets(seed),
          clients(*loop) {
        admit("u");
        smb::server::server_configuration configuration;
        configuration.signing = smb::server::protection::offered;
        configuration.shares.push_back({});
        configuration.shares.back().name = "files";
        configuration.shares.back().volume = std::make_unique<vfs::memory_volume>(*loop, clock);
        if (adjust != nullptr) adjust(configuration);
        server =
            std::make_unique<smb::server::smb_server>(smb::server::server_dependencies{.loop = *loop,
                                                                                       .clock = clock,
                                                                                       .random = secrets,
                                                                                       .accounts = accounts,
                                                                                       .log = log,
                                                                                       .peers = peers,
                                                                                       .watchdog = watchdog},
                                                      std::move(configuration));
        EXPECT_TRUE(server->start({}));
    }

    /// Allows only `user` to log on from now on, with password p.
    void admit(const std::string& user) { admit(std::vector{user}); }
    /// Does the same for several users.
    void admit(const std::vector<std::string>& names) {
        std::vector<smb::server::user_database::admission> only;
        for (const std::string& name : names)
            only.push_back({.name = name, .password = "p"});
        EXPECT_TRUE(users.admit(only));
    }

    /// Returns the client's end of a new connection from an address.
    [[nodiscard]] io::socket_handle connect(
        const io::socket_address& from = io::socket_address::loopback_v4(1)) {
        auto pair = io::socket_handle::pair().value();
        EXPECT_TRUE(pair.first.set_multiplexer(loop.get()));
        EXPECT_TRUE(pair.second.set_multiplexer(loop.get()));
        server->adopt(std::move(pair.first), from);
        return std::move(pair.second);
    }

    void run() {
        while (loop->run().value_or(0) > 0) {}
    }

    /// Stops the server and expects that it holds no resources of any client.
    void stop() {
        server->stop();
        bool is_done = false;
        io::task_group ending(*loop);
        ending.spawn(finish(*server, is_done));
        run();
        ASSERT_TRUE(is_done) << loop->stalled();
        const auto left = server->gauges();
        EXPECT_EQ(left.opens, 0U) << "no open outlives its session";
        EXPECT_EQ(left.files, 0U) << "no file stays locked or shared";
        EXPECT_EQ(left.buffers, 0U) << "every buffer is returned";
    }

    nonce_registry nonces;
    std::unique_ptr<io::simulated_multiplexer> loop;
    simulated_clock& clock;
    predictable_secrets_for_simulation secrets;
    simulated_accounts accounts;
    smb::server::user_database& users = accounts.users;
    log_of_warnings log;
    std::unique_ptr<smb::server::smb_server> server;
    io::task_group clients;

private:
    static io::task<void> finish(smb::server::smb_server& server, bool& is_done) {
        io::task<void> ending = server.done();
        co_await std::move(ending);
        is_done = true;
    }
};

}  // namespace sluice::smb_simulation
