#pragma once

#include "sluice/io/task.hpp"
#include "sluice/smb/server/open.hpp"

namespace sluice::smb::server {

class request;
class smb_server;

/// Ends an open, whoever wants it ended: CLOSE, LOGOFF, TREE_DISCONNECT, the loss of its connection, the end
/// of its durability ([MS-SMB2] 3.3.4.17). It can no longer be named; what waits for it is told; its locks
/// and its oplock go; and if it was the last open of a file to be removed, the file goes. All that others
/// could learn its end by waits for the last write_under_way of it.
///
/// `one` lives on as long as requests hold it. Blocks: for the file system, when a file is removed.
/// Returns the status of that removal, success otherwise.
wire::nt_status end_open(smb_server& host, open& one) noexcept;

/// The same for CLOSE, whose answer is the end of it for others. Suspends: until what is written is.
[[nodiscard]] io::task<wire::nt_status> co_end_open(request& r, open& one) noexcept;

/// Exists while a request changes the file of an open without the latch: on another loop, or waiting for a
/// disk. Whoever opens the file once the open has ended finds it as that request has left it. Made and
/// destroyed with the latch.
class [[nodiscard]] write_under_way {
public:
    write_under_way(smb_server& host, std::shared_ptr<open> of) noexcept;
    write_under_way(const write_under_way&) = delete;
    write_under_way& operator=(const write_under_way&) = delete;
    ~write_under_way();

private:
    smb_server& host_;
    std::shared_ptr<open> of_;
};

}  // namespace sluice::smb::server
