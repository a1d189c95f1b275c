#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/server/core/background.hpp"
#include "sluice/smb/server/core/pending_breaks.hpp"
#include "sluice/smb/server/core/timer_queue.hpp"
#include "sluice/smb/server/file/cached_directories.hpp"
#include "sluice/smb/server/file/file_state.hpp"
#include "sluice/smb/server/file/lease_table.hpp"
#include "sluice/smb/server/file/naming_state.hpp"
#include "sluice/smb/server/file/peer_servers.hpp"
#include "sluice/smb/server/metadata/user_names.hpp"
#include "sluice/smb/server/net/connection_registry.hpp"
#include "sluice/smb/server/net/dispatcher.hpp"
#include "sluice/smb/server/net/server_loop.hpp"
#include "sluice/smb/server/open/offload_tokens.hpp"
#include "sluice/smb/server/open/open_table.hpp"
#include "sluice/smb/server/open/replay.hpp"
#include "sluice/smb/server/report/bounded_log.hpp"
#include "sluice/smb/server/report/event_log.hpp"
#include "sluice/smb/server/report/limit_rejections.hpp"
#include "sluice/smb/server/report/loop_watchdog.hpp"
#include "sluice/smb/server/report/refusal_log.hpp"
#include "sluice/smb/server/session/administrators.hpp"
#include "sluice/smb/server/session/admission.hpp"
#include "sluice/smb/server/session/client_quotas.hpp"
#include "sluice/smb/server/session/configuration.hpp"
#include "sluice/smb/server/session/host_filter.hpp"
#include "sluice/smb/server/session/logon_throttle.hpp"
#include "sluice/smb/server/session/session_table.hpp"
#include "sluice/smb/server/session/share_list.hpp"

namespace sluice::smb::server {

class connection;

/// The environment of a server, passed in so that a simulation can replace it. Every part
/// outlives the server.
struct server_dependencies {
    io::io_multiplexer& loop;
    clock_source& clock;
    secret_random_source& random;
    auth::account_source& accounts;
    event_log& log;
    peer_servers* peers = nullptr;  // null: no other server serves these files
    /// More loops for connections, each run by a thread of its own. `loop` is the first; its thread
    /// creates, starts and stops the server.
    std::span<io::io_multiplexer* const> other_loops{};
    loop_watchdog* watchdog = nullptr;  // of these loops; null: none
};

/// The state that the connections and commands of a server share: tables, limits,
/// timers, logs, loops.
///
/// Thread safety: any thread. What changes here is a monitor of its own, or atomic; what the
/// constructor sets never changes.
class server_context {
public:
    server_context(const server_dependencies& given, server_configuration configuration,
                   const dispatcher& functions) noexcept;
    server_context(const server_context&) = delete;
    server_context& operator=(const server_context&) = delete;

    /// The first loop.
    [[nodiscard]] io::io_multiplexer& loop() const noexcept { return dependencies_.loop; }
    /// All of them, the first one first.
    [[nodiscard]] const std::vector<std::unique_ptr<server_loop>>& loops() const noexcept { return loops_; }
    [[nodiscard]] clock_source& clock() const noexcept { return dependencies_.clock; }
    [[nodiscard]] secret_random_source& random() const noexcept { return dependencies_.random; }
    [[nodiscard]] auth::account_source& accounts() const noexcept { return dependencies_.accounts; }
    [[nodiscard]] event_log& log() const noexcept { return log_; }
    /// Null if no other server serves the same files.
    [[nodiscard]] peer_servers* peers() const noexcept { return dependencies_.peers; }
    /// Null if there is none.
    [[nodiscard]] loop_watchdog* watchdog() const noexcept { return dependencies_.watchdog; }
    [[nodiscard]] const server_configuration& configuration() const noexcept { return configuration_; }
    [[nodiscard]] const wire::guid& identity() const noexcept { return identity_; }
    /// The names that the server reports during authentication, and the mechanisms it offers.
    [[nodiscard]] const auth::server_names& names() const noexcept { return names_; }
    [[nodiscard]] bytes_view security_offer() const noexcept { return security_offer_; }
    [[nodiscard]] clock_source::utc_time started_at() const noexcept { return started_at_; }
    /// The naming state of a volume's own file system, or of those mounted beneath it. With one
    /// state for both, a mounted file system that hangs would keep renames of the volume's
    /// directories waiting.
    [[nodiscard]] naming_state& names_of(vfs::volume& volume, bool is_beyond_mount) {
        vfs::fs_domain* const beyond = is_beyond_mount ? volume.crossing_domain() : nullptr;
        return naming.of((beyond != nullptr ? *beyond : volume.domain()).number());
    }
    /// Returns whether a share has continuous availability: from the start of the server on.
    [[nodiscard]] bool has_persistent_opens() const noexcept {
        return has_persistent_opens_.load(std::memory_order_relaxed);  // a setting orders nothing
    }
    void set_persistent_opens() noexcept { has_persistent_opens_.store(true, std::memory_order_relaxed); }
    [[nodiscard]] const dispatcher& functions() const noexcept { return functions_; }
    /// Null if there is none. It may have ended.
    [[nodiscard]] std::shared_ptr<session> find_session(std::uint64_t id) const noexcept;
    /// A share that clients can connect to by this name, in any case; null if there is none.
    [[nodiscard]] std::shared_ptr<share> find_share(std::string_view name) const noexcept;
    /// Returns whether a share refers clients to other servers. Complexity: linear in the shares.
    [[nodiscard]] bool has_referrals() const noexcept;

private:
    mutable bounded_log log_;
    wire::guid identity_;

public:
    limit_rejections rejections;
    client_quotas quotas;  // before everything that is counted
    server::admission admission;
    logon_throttle logons;
    naming_states naming;
    file_table files;  // before whatever holds a file's state
    open_table opens;
    lease_table leases;  // before the objects that refer to leases
    /// Owned by the first loop.
    std::vector<std::shared_ptr<unrestored_open>> unrestored;
    cached_directories directories;
    refusal_log refusals;
    /// Work that belongs to no connection: time limits of breaks and of durable opens.
    background_work background;
    /// The time limits of breaks, durable opens and sessions.
    timer_queue later;
    pending_breaks breaks;
    replay_table replays;
    session_table sessions;
    share_list shares;
    server::administrators administrators;
    host_filter hosts;
    server::user_names user_names;
    connection_registry connections;
    loop_choice homes;
    server::offload_tokens offload_tokens;

private:
    server_dependencies dependencies_;
    server_configuration configuration_;
    const dispatcher& functions_;
    std::vector<std::unique_ptr<server_loop>> loops_;  // the first one is dependencies_.loop
    auth::server_names names_;
    std::vector<std::byte> security_offer_;
    clock_source::utc_time started_at_{};
    std::atomic<bool> has_persistent_opens_{false};
};

}  // namespace sluice::smb::server
