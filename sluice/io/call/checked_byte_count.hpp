#pragma once

#include <cerrno>
#include <cstddef>

// A file system, in particular one in user space, may report more bytes than were
// requested. Such a result, if counted, would lead past the caller's buffers.

namespace sluice::io {

/// Returns `moved`, which is a count of bytes or a negative errno value, or -EIO if it is more than
/// `asked_bytes`.
[[nodiscard]] constexpr std::ptrdiff_t checked_outcome(std::ptrdiff_t moved,
                                                       std::size_t asked_bytes) noexcept {
    return moved > 0 and static_cast<std::size_t>(moved) > asked_bytes ? -EIO : moved;
}

/// Returns the value that a system call returned, or -1 with EIO in errno if it is
/// more than `asked_bytes`.
[[nodiscard]] inline std::ptrdiff_t checked_byte_count(std::ptrdiff_t returned,
                                                       std::size_t asked_bytes) noexcept {
    if (checked_outcome(returned, asked_bytes) == returned) [[likely]]
        return returned;
    errno = EIO;
    return -1;
}

}  // namespace sluice::io
