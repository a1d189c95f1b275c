#pragma once

#include <expected>

#include "sluice/base/error.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/vfs/node.hpp"

namespace sluice::smb::server {

/// The status that tells a client what an errno value means, in the one place where that is
/// decided. `vfs` distinguishes the two ways a path can be missing: ENOENT its last component,
/// ENOTDIR an earlier one.
[[nodiscard]] wire::nt_status status_of(const error& why) noexcept;

/// The status for vfs::limits::crosses_mount: repeat the lookup in volume::crossing_domain(). Where
/// a command does not, the client gets NOT_SAME_DEVICE instead.
inline constexpr wire::nt_status crosses_mount = wire::nt_status::retry;

/// node::status, with the error as the status for a client. Blocks: for the file system.
[[nodiscard]] std::expected<vfs::metadata, wire::nt_status> asked_status(vfs::node& node) noexcept;

}  // namespace sluice::smb::server
