#pragma once

#include "sluice/base/bytes.hpp"
#include "sluice/smb/wire/nt_status.hpp"
#include "sluice/vfs/node.hpp"

namespace sluice::smb::server {

/// Writes the extended attributes of an [MS-FSCC] 2.4.16 list to a file: all of them or, where
/// the file system fails midway, some. Errors: INVALID_EA_NAME, EA_LIST_INCONSISTENT, and
/// those of the file system.
/// Blocks: for it.
[[nodiscard]] wire::nt_status change_extended_attributes(vfs::node& node, bytes_view list);

}  // namespace sluice::smb::server
