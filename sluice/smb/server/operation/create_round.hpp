#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "sluice/smb/server/core/fifo_lock.hpp"
#include "sluice/smb/server/file/file_state.hpp"
#include "sluice/smb/server/file/naming_state.hpp"
#include "sluice/vfs/volume.hpp"

namespace sluice::smb::server {

/// Returns whether a node is in a file system that is mounted beneath its volume.
[[nodiscard]] inline bool is_beyond_mount(vfs::volume& volume, vfs::node& node) noexcept {
    return volume.crossing_domain() != nullptr and node.domain().number() != volume.domain().number();
}

/// The rights to names that one round of a CREATE, LINK or RENAME holds: a place at the
/// rename barrier, a pending name, and a directory whose names change. The destructor
/// releases the rest of them.
///
/// Loop-owned, in the frame of the round.
class create_round {
public:
    create_round(naming_state& names, io::io_multiplexer& loop) noexcept
        : names_(names), entered_(loop), barrier_(entered_) {}
    create_round(const create_round&) = delete;
    create_round& operator=(const create_round&) = delete;
    ~create_round() { release(); }

    /// Enters the rename barrier. If it returns false, wait for entered(), then call is_inside().
    [[nodiscard]] bool enter() noexcept { return names_.rename_barrier().lock_shared(barrier_); }
    /// The same for a holder that is alone: the RENAME of a directory or a stream, a
    /// change of a reparse point.
    [[nodiscard]] bool enter_alone() noexcept { return names_.rename_barrier().lock(barrier_); }
    [[nodiscard]] one_shot_event<wire::nt_status>& entered() noexcept { return entered_; }
    [[nodiscard]] bool is_inside() const noexcept { return names_.rename_barrier().is_held_by(barrier_); }
    /// Call before the lookup.
    void begin_lookup() noexcept { removals_ = names_.removals(); }
    /// Returns whether a file of the domain has been removed since begin_lookup().
    [[nodiscard]] bool has_removals() const noexcept { return names_.removals() != removals_; }

    [[nodiscard]] naming_state& names() noexcept { return names_; }
    [[nodiscard]] std::optional<pending_creates::place>& pending() noexcept { return pending_; }

    /// The directory change that has begun at `directory` ends with the round.
    void holds_change_of(std::shared_ptr<file_state> directory) noexcept {
        release_directory();
        changed_ = std::move(directory);
    }
    /// The name is visible, and its creator has joined.
    void release_name() noexcept {
        if (pending_) names_.creates().end(*pending_);
        pending_.reset();
        release_directory();
    }
    /// Releases all rights. Does nothing if called again.
    void release() noexcept {
        release_name();
        names_.rename_barrier().unlock(barrier_);
    }

private:
    void release_directory() noexcept {
        const std::shared_ptr<file_state> changed = std::exchange(changed_, nullptr);
        if (changed == nullptr) return;
        const file_section held(*changed);
        changed->protocol(held).end_directory_change();
    }

    naming_state& names_;
    one_shot_event<wire::nt_status> entered_;
    fifo_lock::lock_request barrier_;
    std::uint64_t removals_ = 0;
    std::optional<pending_creates::place> pending_;
    std::shared_ptr<file_state> changed_;
};

}  // namespace sluice::smb::server
