#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/vfs/memory/memory_change_feed.hpp"
#include "sluice/vfs/memory/memory_content.hpp"
#include "sluice/vfs/memory/memory_file.hpp"
#include "sluice/vfs/memory/memory_volume_options.hpp"
#include "sluice/vfs/node.hpp"
#include "sluice/vfs/volume.hpp"

// Internal to the memory volume: its files and names.

namespace sluice::vfs {

/// The place for a new name.
struct memory_place {
    memory_file* directory = nullptr;
    std::string_view name;
    memory_entry_ptr taken{};
};

/// The state of a volume. `mutex` guards it, except `owner`, `loops` and `clock`. Every call of the
/// volume, its nodes, listings and watches holds it. It is recursive, because a change is recorded
/// in the feed, and a listener may use the volume.
class memory_tree {
public:
    memory_tree(volume& owned_by, io::io_multiplexer& with, const clock_source& at,
                const memory_volume_options& chosen);

    [[nodiscard]] time_point now() const noexcept { return time_of(clock.utc_now()); }
    [[nodiscard]] result<memory_entry_ptr> find(std::string_view path, follow_links links);
    [[nodiscard]] result<memory_place> place(std::string_view path);
    [[nodiscard]] result<void> may_change() const noexcept;

    [[nodiscard]] std::shared_ptr<memory_file> make_file(node_kind kind);
    memory_entry_ptr add(memory_file& directory, std::string_view name, std::shared_ptr<memory_file> file);
    void remove(memory_entry& entry);
    /// Moves an entry to another place, which is free.
    void move(const memory_entry_ptr& entry, memory_file& directory, std::string_view name);

    void record(change_kind what, const memory_entry& entry);
    void touch(memory_file& file, bool is_modified) noexcept;
    [[nodiscard]] bool draws(std::uint32_t chance) noexcept;
    [[nodiscard]] bool is_stopped() const noexcept;

    volume& owner;
    std::vector<io::io_multiplexer*> loops;  // on which nodes are used; never empty
    const clock_source& clock;
    mutable std::recursive_mutex mutex;
    memory_volume_options options;
    std::optional<seeded_random> random;  // always present; replaced when faults are set
    memory_content::budget room;
    memory_change_feed feed;
    memory_entry_ptr root;

private:
    std::uint64_t next_id_ = 1;
};

[[nodiscard]] node_ptr make_memory_node(memory_tree& tree, memory_entry_ptr entry);

}  // namespace sluice::vfs
