#pragma once

#include <map>
#include <memory>

#include "sluice/base/random.hpp"
#include "sluice/vfs/memory_change_feed.hpp"
#include "sluice/vfs/memory_content.hpp"
#include "sluice/vfs/memory_volume.hpp"

// Internal to the memory volume: its files and names.

namespace sluice::vfs {

struct memory_file;

/// One name of one file. Shared by the directory and the nodes that were found by it.
struct memory_entry {
    memory_file* parent = nullptr;  // null: the root, or removed
    std::string name;
    std::shared_ptr<memory_file> file;
    std::string last_path{};  // once removed
};
using memory_entry_ptr = std::shared_ptr<memory_entry>;

struct memory_stream {
    explicit memory_stream(memory_content::budget& from) noexcept : content(from) {}
    std::string name;
    memory_content content;
    bool is_removed = false;
};

struct memory_file {
    explicit memory_file(memory_content::budget& from) noexcept : content(from) {}
    metadata status;  // its sizes are those of `content`
    memory_content content;
    std::string link_target;
    memory_entry* self = nullptr;  // a directory's one name; null for the root and once removed
    // By folded name.
    std::map<std::string, memory_entry_ptr, std::less<>> children;
    std::map<std::string, std::shared_ptr<memory_stream>, std::less<>> streams;
    std::map<std::string, extended_attribute, std::less<>> attributes;
    std::vector<std::byte> security;
};

/// Where something is to get a name.
struct memory_place {
    memory_file* directory = nullptr;
    std::string_view name;
    memory_entry_ptr taken{};
};

class memory_tree {
public:
    memory_tree(io::io_multiplexer& with, const clock_source& at, const memory_volume_options& chosen);

    [[nodiscard]] time_point now() const noexcept { return clock.utc_now(); }
    [[nodiscard]] result<memory_entry_ptr> find(std::string_view path, follow_links links);
    [[nodiscard]] result<memory_place> place(std::string_view path);
    [[nodiscard]] result<void> may_change() const noexcept;
    [[nodiscard]] static std::string path_of(const memory_entry& entry);

    [[nodiscard]] std::shared_ptr<memory_file> make_file(node_kind kind);
    memory_entry_ptr add(memory_file& directory, std::string_view name, std::shared_ptr<memory_file> file);
    void remove(memory_entry& entry);
    /// Gives an entry another place, which is free.
    void move(const memory_entry_ptr& entry, memory_file& directory, std::string_view name);

    void note(change_kind what, const memory_entry& entry);
    void touch(memory_file& file, bool is_modified) noexcept;
    [[nodiscard]] bool draws(std::uint32_t chance) noexcept;

    io::io_multiplexer& multiplexer;
    const clock_source& clock;
    memory_volume_options options;
    std::optional<seeded_random> random;  // always there; a new one for new faults
    memory_content::budget room;
    memory_change_feed feed;
    memory_entry_ptr root;

private:
    std::uint64_t next_id_ = 1;
};

[[nodiscard]] node_ptr make_memory_node(memory_tree& tree, memory_entry_ptr entry);

}  // namespace sluice::vfs
