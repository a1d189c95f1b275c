#pragma once

#include "sluice/smb/server/file/lease.hpp"

// Break notifications to the holders of oplocks and leases, and the time limits for the answers
// ([MS-SMB2] 3.3.4.6, 3.3.4.7, 3.3.6.1).

namespace sluice::smb::server {

class server_context;

/// Asks the holder to give up everything except `keep`, if it has more: notifies it, and starts the
/// time limit. A holder whose connection is lost cannot be notified, and loses its opens instead: before
/// the outermost call returns, or when their last writes have ended.
void ask_to_give_up(server_context& host, const std::shared_ptr<lease>& of, wire::lease_state keep);

/// The holder keeps no more than `kept`. Wakes the requests that wait for that. Returns the status
/// of lease::acknowledge(); sends a further break from the loop, after the reply to the answer.
[[nodiscard]] wire::nt_status take_answer(server_context& host, const std::shared_ptr<lease>& of,
                                          wire::lease_state kept);

/// An open has nothing to do with its lease any more, which ends if it was the last that had it.
void leave_lease(server_context& host, open& one) noexcept;

/// The holder has broken the protocol, or its time is over.
void take_away(server_context& host, lease& of) noexcept;

}  // namespace sluice::smb::server
