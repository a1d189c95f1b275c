#pragma once

// The server that the target smb2_server_states attacks: several shares of one volume in memory,
// one of a FAT image, users that are added and removed, simulated time. Only the input determines
// the run, so that it can be repeated.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/io/simulated/simulated_multiplexer.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/server/session/user_database.hpp"
#include "sluice/vfs/memory/memory_volume.hpp"

namespace sluice::fuzz {

class silent_log final : public smb::server::event_log {
public:
    void write(smb::server::event_severity, std::string_view,
               std::initializer_list<smb::server::event_field>) noexcept override {}
};

/// The users of a simulation, one of whom is a guest.
class accounts final : public smb::auth::account_source {
public:
    std::optional<smb::auth::account> find(std::string_view user, std::string_view domain) noexcept override;
    bool is_same(const account_name& one, const account_name& other) const noexcept override {
        return users_.is_same(one, other);
    }
    /// Allows only users in this set to log on from now on: bits for u, v and the
    /// guest g, with password p.
    void admit(unsigned set);

private:
    smb::server::user_database users_;
};

/// The conditions of a run, as bits of the first two bytes of the input.
struct circumstances {
    explicit circumstances(unsigned bits) noexcept;

    bool requires_signing;
    bool requires_encryption;
    bool allows_guests;
    bool expires_sessions;  // after an hour
    bool has_image;
    bool has_short_transfers;
    bool has_slow_disk;
    bool stops_early;  // the server stops before its clients leave
};

/// One server and its loop. Thread safety: one thread.
class world {
public:
    static constexpr std::size_t users = 3;

    explicit world(const circumstances& how);
    world(const world&) = delete;
    world& operator=(const world&) = delete;
    ~world();

    /// Returns the client's end of a new connection; -1 if no descriptors are left.
    /// The caller closes it.
    [[nodiscard]] int connect();
    /// Runs everything that is ready. Simulated time passes only as far as this work takes.
    void settle();
    /// Advances the time, then does the same.
    void pass(std::chrono::milliseconds time);
    /// Runs until no timer or operation is pending, for any simulated time.
    void finish();
    /// Reloads the shares as on SIGHUP: bits select the shares that stay, and those
    /// with another comment.
    void reload(unsigned stays, unsigned changes);
    void admit(unsigned set);
    /// Makes some transfers fail from now on.
    void set_faults(unsigned choice);
    /// Ends the server, and checks that no state of any client is left.
    void stop();
    /// Checks the invariants and takes snapshots.
    void check() const;

    [[nodiscard]] simulated_clock& clock() noexcept { return loop_->clock_of_simulation(); }
    [[nodiscard]] smb::server::smb_server& server() noexcept { return *server_; }

private:
    [[nodiscard]] std::vector<smb::server::share_configuration> shares(unsigned stays, unsigned changes);
    [[nodiscard]] std::unique_ptr<vfs::volume> image();
    static io::task<void> end(smb::server::smb_server& server, bool& is_done);

    circumstances how_;
    std::unique_ptr<io::simulated_multiplexer> loop_;
    predictable_secrets_for_simulation secrets_{1};
    accounts accounts_;
    silent_log log_;
    std::shared_ptr<vfs::memory_volume> memory_;
    bool has_shared_feed_ = false;  // the first share of the memory volume has its change feed
    std::uint64_t images_mounted_ = 0;
    std::unique_ptr<smb::server::smb_server> server_;
};

}  // namespace sluice::fuzz
