#include "sluice/vfs/loop_bound_file.hpp"

#include <algorithm>

namespace sluice::vfs {

io::io_multiplexer& loop_here(std::span<io::io_multiplexer* const> loops) noexcept {
    const auto found = std::ranges::find_if(loops, &io::io_multiplexer::is_owner);
    // It has no owner yet and becomes the caller's.
    return found == loops.end() ? *loops.front() : **found;
}

}  // namespace sluice::vfs
