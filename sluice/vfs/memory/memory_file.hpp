#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sluice/vfs/memory/memory_content.hpp"
#include "sluice/vfs/node_attached.hpp"

// Internal to the memory volume: its files and their names.

namespace sluice::vfs {

struct memory_file;

/// One name of a file. The directory and the nodes that were found by it share it.
struct memory_entry {
    memory_file* parent = nullptr;  // null: the root, or removed
    std::string name;
    std::shared_ptr<memory_file> file;
    std::string last_path{};  // set on removal
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
    memory_entry* self = nullptr;  // a directory's only name; null for the root and after removal
    // By folded name.
    std::map<std::string, memory_entry_ptr, std::less<>> children;
    std::map<std::string, std::shared_ptr<memory_stream>, std::less<>> streams;
    std::map<std::string, extended_attribute, std::less<>> attributes;
    std::vector<std::byte> security;
};

/// Returns the path of a name, or its last path if it was removed.
[[nodiscard]] std::string path_of(const memory_entry& entry);

/// Returns the directory of a node of a memory volume; null if it is not a directory, or belongs to
/// another volume.
[[nodiscard]] memory_file* memory_directory_of(node& which) noexcept;

}  // namespace sluice::vfs
