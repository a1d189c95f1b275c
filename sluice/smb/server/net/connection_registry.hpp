#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/net/server_loop.hpp"
#include "sluice/smb/server/report/traffic.hpp"

namespace sluice::smb::server {

class connection;
class replier;

/// A reference to a connection for any thread. It outlives the connection, after whose end its
/// posts are lost. Immutable, with atomic flags. Only the home loop turns the weak pointer into a
/// strong one, so that the connection is destroyed there.
class connection_handle {
public:
    /// `address`: the address of the client, without a port.
    connection_handle(server_loop& home, std::weak_ptr<replier> of, std::string address) noexcept
        : home_(home), of_(std::move(of)), address_(std::move(address)) {}

    [[nodiscard]] server_loop& home() const noexcept { return home_; }
    [[nodiscard]] const std::string& address() const noexcept { return address_; }
    /// Ends the connection soon; `why` is for the log, and a literal. The caller holds no mutex.
    void close(std::string_view why) const noexcept;
    /// Runs `what(replier*)` on the home loop, at once if this is its thread; null: the connection
    /// is gone. The caller holds no mutex.
    template <class What>
    void at_home(What what) const noexcept {
        home_.do_here([of = of_, done = std::move(what)]() mutable noexcept { done(of.lock().get()); });
    }

    /// Returns whether the connection is closing and sends nothing more. The home loop sets this.
    // relaxed: only the flag is read; its consequences happen on the home loop.
    [[nodiscard]] bool is_closing() const noexcept { return is_closing_.load(std::memory_order_relaxed); }
    void set_closing() noexcept { is_closing_.store(true, std::memory_order_relaxed); }
    /// Returns whether the last unsolicited message was undelivered when the home loop last
    /// checked: then no more are sent on this connection.
    [[nodiscard]] bool has_undelivered() const noexcept {
        return has_undelivered_.load(std::memory_order_relaxed);
    }
    void record_undelivered(bool now) noexcept { has_undelivered_.store(now, std::memory_order_relaxed); }

private:
    server_loop& home_;
    std::weak_ptr<replier> of_;
    const std::string address_;
    std::atomic<bool> is_closing_{false};
    std::atomic<bool> has_undelivered_{false};
};

/// The connections of a server, the sockets it has accepted for them, and whether it takes more.
///
/// Invariant: a connection is in it from enter() until leave(), which its home loop calls, and
/// has a socket that is counted. Monitor: any thread; `mutex_` guards the rest. Allocates: a
/// node per connection.
class connection_registry {
public:
    connection_registry() noexcept = default;
    connection_registry(const connection_registry&) = delete;
    connection_registry& operator=(const connection_registry&) = delete;

    /// Counts one more accepted socket, unless there are `most` already. Returns whether it did.
    [[nodiscard]] bool take_socket(std::size_t most) noexcept;
    void release_socket() noexcept;

    void enter(connection& fresh, std::shared_ptr<connection_handle> handle);
    /// `last`: its traffic, which stays counted.
    void leave(connection& ended, const traffic& last) noexcept;

    /// Stops accepting connections. Returns the existing ones.
    [[nodiscard]] std::vector<std::shared_ptr<connection_handle>> stop();
    [[nodiscard]] bool is_stopping() const noexcept {
        // relaxed: a connection that misses it is in the list of stop(), or is
        // cancelled with its loop.
        return is_stopping_.load(std::memory_order_relaxed);
    }
    /// The connections of a loop. Called on its thread, which does not keep them
    /// across a suspension.
    /// Complexity: linear in all.
    [[nodiscard]] std::vector<connection*> of_loop(const server_loop& home) const;
    [[nodiscard]] std::size_t size() const noexcept {
        const lock_guard held(mutex_);
        return connections_.size();
    }
    /// Calls `look(const connection&)` for each, under the mutex: it reads what any thread may, and
    /// locks and posts nothing. Returns the traffic of those that have left.
    template <class Look>
    [[nodiscard]] traffic read_each(Look look) const {
        const lock_guard held(mutex_);
        for (const auto& [one, handle] : connections_)
            look(static_cast<const connection&>(*one));
        return of_ended_;
    }

private:
    mutable ranked_mutex<lock_rank::registry> mutex_;
    std::unordered_map<connection*, std::shared_ptr<connection_handle>> connections_
        SLUICE_GUARDED_BY(mutex_);
    std::size_t sockets_ SLUICE_GUARDED_BY(mutex_) = 0;  // of connections, from their acceptance on
    traffic of_ended_ SLUICE_GUARDED_BY(mutex_);         // of connections that are gone
    std::atomic<bool> is_stopping_{false};
};

}  // namespace sluice::smb::server
