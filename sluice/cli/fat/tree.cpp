#include "sluice/cli/fat/tree.hpp"

#include <algorithm>

namespace sluice::cli {

fat::item_handle find_or_fail(fat::file_system& system, const std::string& path) {
    return value_or_fail(system.find(path), shown(path));
}

std::vector<tree_entry> entries_of(fat::file_system& system, const std::string& path) {
    const fat::item_handle directory = find_or_fail(system, path);
    std::vector<tree_entry> found;
    for (std::uint32_t slot = 0;;) {
        const auto next = value_or_fail(system.list(*directory, slot), shown(path));
        if (not next) return found;
        found.push_back(
            {.path = path.empty() ? next->name : path + "/" + next->name, .status = next->status});
        slot = next->slot + 1;
    }
}

std::vector<tree_entry> tree_of(fat::file_system& system, const std::string& path) {
    {
        const fat::item_handle top = find_or_fail(system, path);
        const fat::item_status status = system.status(*top);
        if (not status.is_directory) return {{.path = path, .status = status}};
    }
    std::vector<tree_entry> found = entries_of(system, path);
    for (std::size_t i = 0; i != found.size(); ++i) {
        if (not found[i].status.is_directory) continue;
        const std::vector<tree_entry> below = entries_of(system, found[i].path);
        found.insert(found.end(), below.begin(), below.end());
    }
    return found;
}

std::uint64_t runs_of(fat::file_system& system, fat::item& file) {
    std::uint64_t runs = 0;
    std::optional<std::uint64_t> end;
    const auto done = system.for_each_extent(file, {.offset = 0, .length = system.status(file).size_bytes},
                                             [&](const fat::file_system::piece& piece) {
                                                 if (not piece.place) return true;
                                                 runs += piece.place != end;
                                                 end = *piece.place + piece.length;
                                                 return true;
                                             });
    succeed_or_fail(done, "its clusters");
    return runs;
}

fat::lookup_strategy strategy_of(const std::string& name) {
    if (name == "naive") return fat::lookup_strategy::naive;
    return name == "cursor" ? fat::lookup_strategy::cursor : fat::lookup_strategy::runs;
}

}  // namespace sluice::cli
