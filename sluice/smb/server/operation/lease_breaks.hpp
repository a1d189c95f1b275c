#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sluice/smb/server/core/pending_breaks.hpp"
#include "sluice/smb/server/file/file_state.hpp"
#include "sluice/smb/server/file/lease.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"

// Break notifications to the holders of oplocks and leases, and the time limits for the answers
// ([MS-SMB2] 3.3.4.6, 3.3.4.7, 3.3.6.1).

namespace sluice::smb::server {

class open;
class request;
class server_context;

/// Breaks that were decided in the section of a file, and are sent after it: finding a
/// channel locks sessions.
///
/// Each counts among the pending breaks of the server from its decision until it is sent: so a
/// reply to its holder that is made after the decision follows the notification.
/// Loop-owned, on the stack of the deciding function, declared before the section. Empty when it is
/// destroyed (ENSURE). Allocates: nothing while it is empty.
class decided_breaks {
public:
    decided_breaks() noexcept = default;
    decided_breaks(decided_breaks&&) noexcept = default;
    ~decided_breaks() { ENSURE(decided_.empty(), "a break that was decided is sent"); }

    /// Decides that the holder is to give up everything except `keep`, if it has more.
    void add(const file_section& held, server_context& host, const std::shared_ptr<lease>& of,
             wire::lease_state keep);
    /// Adds the notification that is parked at the lease, if it still matters.
    void add_parked(const file_section& held, server_context& host, const std::shared_ptr<lease>& of);

    /// Sends them, outside the section. The opens of a holder that cannot be reached end; a call
    /// while these end leaves its breaks to the outermost one, so that the stack does not grow with
    /// the opens of a client. Returns whether any have ended by this call.
    bool send(server_context& host) noexcept;

private:
    struct decision {
        std::shared_ptr<lease> of;
        std::vector<std::shared_ptr<open>> opens;  // that had the lease
        std::optional<break_notice> notice;        // none: the holder has yet to
                                                   // answer an earlier one
        bool is_parked = false;                    // the notification follows a reply
        wire::oplock_break_reply message{wire::oplock_break{}};
        bool must_encrypt = false;
        std::uint32_t which = 0;  // number among the lease's breaks
        pending_break counted;
    };
    void add_notice(const file_section& held, server_context& host, const std::shared_ptr<lease>& of,
                    const break_notice& notice);
    void yield(const file_section& held, server_context& host, const std::shared_ptr<lease>& of,
               wire::lease_state keep);
    [[nodiscard]] static decision describe(const file_section& held, const std::shared_ptr<lease>& of);
    [[nodiscard]] static bool send_or_end(server_context& host, decision& one) noexcept;
    [[nodiscard]] static bool end_opens(server_context& host, const decision& of) noexcept;

    static inline thread_local constinit decided_breaks* outermost_ = nullptr;

    std::vector<decision> decided_;
};

/// The holder keeps no more than `kept`. Wakes the requests that wait for that. Returns the status
/// of lease::acknowledge(), OBJECT_NAME_NOT_FOUND if the lease has ended. A further break follows
/// the reply to the answer, which is the request.
[[nodiscard]] wire::nt_status take_answer(request& r, const std::shared_ptr<lease>& of,
                                          wire::lease_state kept);

/// An open has nothing to do with its lease any more, which ends if it was the last that had it.
/// Returns the lease, which the caller releases outside the section; null if there is none.
[[nodiscard]] std::shared_ptr<lease> leave_lease(const file_section& held, server_context& host,
                                                 open& one) noexcept;

/// The holder has broken the protocol.
void revoke_caching(server_context& host, lease& of) noexcept;

/// A reply that grants a lease has been sent, or is not sent: a break that
/// waited for it follows now.
void end_unsent_grant(server_context& host, const std::shared_ptr<lease>& of) noexcept;

}  // namespace sluice::smb::server
