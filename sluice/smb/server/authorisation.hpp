#pragma once

#include <span>
#include <vector>

#include "sluice/smb/server/request.hpp"
#include "sluice/smb/wire/access_mask.hpp"

namespace sluice::smb::server {

/// The rights the user of a request has to a file: what its security descriptor grants, within what the share
/// grants. Errors: none; a descriptor that cannot be read grants nothing but to the owner.
[[nodiscard]] wire::access_mask rights_to(const request& r, vfs::node& file) noexcept;

}  // namespace sluice::smb::server
