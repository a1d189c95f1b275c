#include "sluice/smb/wire/compression/pattern_v1.hpp"

#include "sluice/smb/wire/compression/byte_matches.hpp"

namespace sluice::smb::wire {

byte_runs runs_of(bytes_view data) noexcept {
    byte_runs found;
    if (data.size() < pattern_bytes_min) return found;
    const std::byte* const bytes = data.data();
    // Equal to itself, one byte further on: a run.
    found.front = 1 + equal_bytes(bytes, bytes + 1, data.size() - 1);
    if (found.front < pattern_bytes_min) found.front = 0;
    const std::size_t left = data.size() - found.front;
    if (left < pattern_bytes_min) return found;
    const std::byte last = bytes[data.size() - 1];
    while (found.back != left and bytes[data.size() - 1 - found.back] == last)
        ++found.back;
    if (found.back < pattern_bytes_min) found.back = 0;
    return found;
}

}  // namespace sluice::smb::wire
