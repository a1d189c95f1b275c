#pragma once

namespace sluice::smb::server {

class server_context;

/// Creates the persistent opens again that an earlier process has recorded, each without its
/// client, which has until the end of the recorded time to return. A record without a file or user
/// is dropped. One that cannot be restored now keeps clients from its file until its time ends, and
/// the next process tries again. Both are logged.
/// On the first loop, before clients are served. Blocks: for the file systems of the shares.
void restore_opens(server_context& host);

}  // namespace sluice::smb::server
