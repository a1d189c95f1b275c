#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/fat/file_system.hpp"
#include "sluice/io/pipe_handle.hpp"
#include "sluice/vfs/change_queue.hpp"

// Internal to the volume.

namespace sluice::fat {

/// Tells of what is done through a volume: nobody else changes an image that is mounted. Commits what was
/// changed a second after the first change.
/// Thread safety: as vfs::change_feed.
class own_change_feed final : public vfs::change_feed {
public:
    /// `of` outlives it.
    own_change_feed(io::io_multiplexer& multiplexer, file_system& of);
    ~own_change_feed() override;

    [[nodiscard]] result<std::unique_ptr<vfs::change_watch>> watch(
        vfs::node& directory, bool recursive, vfs::change_listener& listener) noexcept override;
    [[nodiscard]] io::task<bool> co_changed() noexcept override;
    void tell() noexcept override;

    /// Something has happened to what is at a path.
    void note(vfs::change_kind what, bool is_directory, const std::string& path);
    /// What a path is called by each watch that sees it: to be asked before a move, and told after.
    using names_seen = std::vector<std::optional<std::string>>;
    [[nodiscard]] names_seen names_of(const std::string& path) const;
    void note_move(const names_seen& before, bool is_directory, const std::string& after);
    /// A directory has been removed: its watches end.
    void note_end(const item& directory);

private:
    class held_watch;

    void ring() noexcept;
    void forget(held_watch& which) noexcept;

    file_system& system_;
    io::pipe_handle::pair bell_;  // a byte for co_changed() to wake by
    bool has_rung_ = false;
    // co_changed()'s and tell()'s:
    deadline commits_at_;  // none: nothing was changed since the last commit
    bool commits_now_ = false;
    std::vector<held_watch*> watches_;
    vfs::change_queue queue_;
};

}  // namespace sluice::fat
