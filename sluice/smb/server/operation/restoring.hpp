#pragma once

namespace sluice::smb::server {

class server_context;

/// Creates the persistent opens again that an earlier process has recorded, each without its
/// client, which has until the end of the recorded time to return. A record without a file or user
/// is dropped, and one that cannot be restored now is kept for the next process; both are logged.
/// On the first loop, before clients are served. Blocks: for the file systems of the shares.
void restore_opens(server_context& host);

}  // namespace sluice::smb::server
