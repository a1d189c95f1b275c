#pragma once

#include "sluice/smb/server/file/lease.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/create/create.hpp"

// The caching of a file that clients are granted, by oplocks and leases, and the breaks that other
// clients' requests cause ([MS-SMB2] 3.3.5.9.8, 3.3.5.9.11; [MS-FSA] 2.1.4.12, 2.1.5.18).

namespace sluice::smb::server {

/// An open about to be made, as far as it concerns those who cache the file.
struct caching_intent {
    wire::access_mask access = wire::access_mask::none;
    bool overwrites = false;        // the content goes
    bool violates_sharing = false;  // others would have to close the file first
    bool has_waited = false;        // this is not its first attempt
    bool takes_over = false;        // no write of an open that has ended may come after it
    std::shared_ptr<lease> own;     // the lease it would have: its holder gets no break
};

enum class caching_outcome : std::uint8_t {
    clear,      ///< there is no conflict
    waited,     ///< a holder has answered a break, or timed out: check the file again
    blocked,    ///< a break was sent, and has to be waited for
    cancelled,  ///< the request is not to wait, or no longer: request::wait_failure_status()
    exhausted,  ///< others cache the file again each time: SHARING_VIOLATION
};

/// Whether an open with these rights only looks at attributes, and so concerns nobody's cache.
[[nodiscard]] bool is_for_attributes(wire::access_mask access) noexcept;

/// Breaks the leases and oplocks that conflict with an open. Returns `clear`; `blocked` where the rules say
/// that one of them has to answer first; or `waited` if opens of theirs have ended.
[[nodiscard]] caching_outcome ask_for_way(request& r, file_state& file,
                                          const caching_intent& intent) noexcept;
/// Waits until a lease or oplock of a file has changed, or an open of it has ended: returns `waited` or
/// `cancelled`. Suspends: up to limits::break_within, with an interim reply.
[[nodiscard]] io::task<caching_outcome> wait_for_caching(request& r, file_state& file) noexcept;

/// The lease a CREATE asks to share, if there is one of its client and key. Null: none, or none was asked
/// for.
[[nodiscard]] std::shared_ptr<lease> find_lease(const request& r, const wire::create_args& args) noexcept;

/// Grants a new open as much of the caching it asks for as the other opens allow, and sets the
/// reply, whose action is set, accordingly.
void grant_caching(request& r, open& fresh, const wire::create_args& args, wire::create_reply& reply);
/// Sets the caching of an open in the reply.
void encode_caching(const open& one, wire::create_reply& reply) noexcept;

/// The content of a file changes, or bytes of it are locked, through `by`: breaks the read caching
/// of all others. Does not wait.
void end_read_caching(server_context& host, file_state& file, const open* by) noexcept;

/// A file will be renamed or removed: asks the clients that keep it open only to cache it to close
/// it, and waits for all of them. Suspends. After `waited` the caller repeats all its checks.
[[nodiscard]] io::task<caching_outcome> break_caches_for_name_change(request& r, file_state& file,
                                                                     const open* by) noexcept;
/// The same for a file that is removed by the end of an open: does not wait.
void end_handle_caching(server_context& host, file_state& file, const open* by) noexcept;

/// An open has ended, and has left its file: discards its caching, and wakes the requests that wait
/// for its answer.
void end_caching(server_context& host, open& ending) noexcept;

}  // namespace sluice::smb::server
