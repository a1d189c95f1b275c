#pragma once

#include "sluice/smb/server/file/lease.hpp"

// How the holders of oplocks and leases are told to give them up, and how long they may take
// ([MS-SMB2] 3.3.4.6, 3.3.4.7, 3.3.6.1).

namespace sluice::smb::server {

class server_context;

/// Has the holder give up everything but `keep`, if it has more: tells it, and begins its time. A holder
/// whose connection is lost cannot be told, and loses its opens instead; then `of` is no lease of any file
/// any more.
void ask_to_give_up(server_context& host, const std::shared_ptr<lease>& of, wire::lease_state keep);

/// The holder keeps no more than `kept`. Who waits for that goes on. Returns what lease::acknowledge says;
/// a further break is told from the loop, after the answer's reply.
[[nodiscard]] wire::nt_status take_answer(server_context& host, const std::shared_ptr<lease>& of,
                                          wire::lease_state kept);

/// An open has nothing to do with its lease any more, which ends if it was the last that had it.
void leave_lease(server_context& host, open& one) noexcept;

/// The holder has broken the protocol, or its time is over.
void take_away(server_context& host, lease& of) noexcept;

}  // namespace sluice::smb::server
