#pragma once

#include "sluice/smb/server/file/lease.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/create/create.hpp"

// What clients may keep to themselves of a file, oplocks and leases, and who has to give how much of it up
// when somebody else comes ([MS-SMB2] 3.3.5.9.8, 3.3.5.9.11; [MS-FSA] 2.1.4.12, 2.1.5.18).

namespace sluice::smb::server {

/// An open about to be made, as far as it concerns those who cache the file.
struct caching_intent {
    wire::access_mask access = wire::access_mask::none;
    bool overwrites = false;        // the content goes
    bool violates_sharing = false;  // others would have to close the file first
    bool has_waited = false;        // this is not its first attempt
    bool takes_over = false;        // no write of an open that has ended may come after it
    std::shared_ptr<lease> own;     // the lease it would have: its holder is not told
};

enum class caching_outcome : std::uint8_t {
    clear,      ///< nobody is in the way
    waited,     ///< somebody was told and has answered, or run out of time: look at the file again
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

/// Grants a new open as much of the caching it asks for as the others leave, and says so in the reply, whose
/// action is set.
void grant_caching(request& r, open& fresh, const wire::create_args& args, wire::create_reply& reply);
/// Says in the reply what an open has.
void encode_caching(const open& one, wire::create_reply& reply) noexcept;

/// The content of a file changes, or bytes of it are locked, through `by`: nobody else may go on reading from
/// his cache. Waits for nobody.
void end_read_caching(server_context& host, file_state& file, const open* by) noexcept;

/// A file is going to be renamed or removed: those who keep it open only to cache it are asked to close it,
/// and waited for, all of them. Suspends. After `waited` everything is to be looked at again.
[[nodiscard]] io::task<caching_outcome> break_caches_for_name_change(request& r, file_state& file,
                                                                     const open* by) noexcept;
/// The same for a file that is removed by the end of an open: waits for nobody.
void end_handle_caching(server_context& host, file_state& file, const open* by) noexcept;

/// An open has ended, and is no more of its file: what it cached does not matter any more, and who waited for
/// its answer goes on.
void end_caching(server_context& host, open& ending) noexcept;

}  // namespace sluice::smb::server
