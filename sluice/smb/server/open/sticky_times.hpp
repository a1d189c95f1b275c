#pragma once

#include <optional>

#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

/// The times that SET_INFO has set or frozen through an open: changes of the file through this open
/// leave them as they are then ([MS-FSA] 2.1.1.6, UserSetAccessTime, UserSetModificationTime,
/// UserSetChangeTime). Changes through other opens do not. A value; metadata/file_times.hpp works
/// with it.
struct sticky_times {
    bool accessed = false;
    bool written = false;
    bool changed = false;

    /// The times as that SET_INFO has left them, for the writes that were in progress then. Null:
    /// not known.
    struct values {
        vfs::time_point accessed{};
        vfs::time_point written{};
        vfs::time_point changed{};
    };
    std::optional<values> left{};

    [[nodiscard]] bool any() const noexcept { return accessed or written or changed; }
};

}  // namespace sluice::smb::server
