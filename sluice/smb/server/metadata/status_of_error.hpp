#pragma once

#include "sluice/base/error.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

/// The status that tells a client what an errno value means, in the one place where that is decided.
/// `vfs` distinguishes the two ways a path can be missing: ENOENT its last component, ENOTDIR an earlier one.
[[nodiscard]] wire::nt_status status_of(const error& why) noexcept;

}  // namespace sluice::smb::server
