#pragma once

#include <optional>

#include "sluice/vfs/metadata.hpp"

namespace sluice::smb::server {

/// Times that SET_INFO has set or frozen through an open: later requests on this open do not change
/// them ([MS-FSA] 2.1.5.15.2). A value; metadata/file_times.hpp works with it.
struct kept_times {
    std::optional<vfs::time_point> accessed;
    std::optional<vfs::time_point> written;
    std::optional<vfs::time_point> changed;

    [[nodiscard]] bool any() const noexcept { return accessed or written or changed; }
};

}  // namespace sluice::smb::server
