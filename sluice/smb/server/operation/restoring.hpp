#pragma once

namespace sluice::smb::server {

class server_context;

/// Creates the persistent opens again that an earlier process has recorded, each without its client,
/// which has until the end of the recorded time to come back for it. A record that does not fit to
/// its share, its user, its file or the other records is dropped, counted and logged.
/// On the first loop, before clients are served. Blocks: for the file systems of the shares.
void restore_opens(server_context& host);

}  // namespace sluice::smb::server
