#pragma once

#include "sluice/smb/server/open.hpp"

namespace sluice::smb::server {

class smb_server;

/// Ends an open, whoever wants it ended: CLOSE, LOGOFF, TREE_DISCONNECT, the loss of its connection, the end
/// of its durability ([MS-SMB2] 3.3.4.17). It can no longer be named; what waits for it is told; its locks
/// and its oplock go; and if it was the last open of a file to be removed, the file goes.
///
/// `one` lives on as long as requests hold it. Blocks: for the file system, when a file is removed.
/// Returns the status of that removal, success otherwise.
wire::nt_status end_open(smb_server& host, open& one) noexcept;

}  // namespace sluice::smb::server
