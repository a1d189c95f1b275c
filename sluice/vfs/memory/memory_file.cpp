#include "sluice/vfs/memory/memory_file.hpp"

namespace sluice::vfs {

std::string path_of(const memory_entry& entry) {
    if (entry.parent == nullptr) return entry.last_path;
    std::string path = entry.name;
    for (const memory_file* above = entry.parent; above->self != nullptr; above = above->self->parent)
        path = above->self->name + '/' + path;
    return path;
}

}  // namespace sluice::vfs
