#include "sluice/vfs/node_data.hpp"

#include <algorithm>

namespace sluice::vfs {

result<host_runs> node_data::pin_extents(io::extent_pair range, std::size_t runs_max) noexcept {
    io::file_handle* const file = host_file();
    if (file == nullptr) return failure({EOPNOTSUPP, "pin extents"});
    const auto size = file->maximum_extent();
    if (not size) return failure(size.error());
    host_runs pinned{.file = file};
    if (range.length == 0 or range.offset >= *size) return pinned;
    if (runs_max == 0) return failure({E2BIG, "pin extents"});
    pinned.runs.push_back({.place = range.offset, .length = std::min(range.length, *size - range.offset)});
    return pinned;
}

}  // namespace sluice::vfs
