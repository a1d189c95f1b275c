#pragma once

#include "sluice/cli/migration/smb_draft.hpp"

// The restrictions of access. A share is never open to more users than with Samba: a restriction
// that cannot be converted becomes a stricter one, or the share is skipped, and either is reported.
// All functions allocate, and none blocks.

namespace sluice::cli {

/// Converts `valid users` without the names of `invalid users`.
void apply_smb_users(smb_draft& to);
/// Converts `read only`, `write list` and `read list`.
void apply_smb_writers(smb_draft& to);
/// Converts `server smb encrypt` of the server or of a share.
void apply_smb_encryption(smb_draft& to);
/// Converts `hosts allow` and `hosts deny`. Samba checks those of [global] when a client connects
/// to the server, and those of a share later.
void apply_smb_hosts(smb_draft& to);
/// Reports parameters of the server with which clients would see other shares, or could not log on
/// with the ways that sluice has.
void check_smb_server(smb_draft& to);

}  // namespace sluice::cli
