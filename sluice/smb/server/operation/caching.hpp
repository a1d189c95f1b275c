#pragma once

#include "sluice/smb/server/file/lease.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/operation/lease_breaks.hpp"
#include "sluice/smb/wire/create/create.hpp"

// The caching of a file that clients are granted, by oplocks and leases, and the breaks that other
// clients' requests cause ([MS-SMB2] 3.3.5.9.8, 3.3.5.9.11; [MS-FSA] 2.1.4.12, 2.1.5.18).

namespace sluice::smb::server {

/// The client cache that a lease belongs to. All clients of a user that use the same key for a file
/// share one cache: their leases do not conflict ([MS-FSA] 2.1.4.12, oplock keys). Two guests are
/// two users.
struct cache_identity {
    wire::lease_key key{};
    const client_reference* user = nullptr;  // not null: that of an open or session
};

/// The properties of a requested open that decide which caches of the file it breaks.
struct caching_intent {
    wire::access_mask access = wire::access_mask::none;
    bool overwrites = false;              // the content is discarded
    bool violates_sharing = false;        // other clients would have to close the file first
    bool has_waited = false;              // this is not the first attempt
    bool takes_over = false;              // no write of an open that has ended may follow it
    std::shared_ptr<lease> own;           // the lease that it would share: not broken
    std::optional<cache_identity> cache;  // leases of this cache are not broken either
};

enum class caching_outcome : std::uint8_t {
    clear,      ///< there is no conflict
    waited,     ///< a holder has answered a break, or timed out: check the file again
    blocked,    ///< a holder has to answer a break first, or a write has to end
    cancelled,  ///< the request is not to wait, or no longer: request::wait_failure_status()
    exhausted,  ///< others cache the file again each time: SHARING_VIOLATION
};

/// Returns whether an open with these rights only accesses attributes, and so breaks no cache.
[[nodiscard]] bool is_for_attributes(wire::access_mask access) noexcept;

/// A request that waits until a lease or oplock of a file has changed, or an open of it has ended.
/// It enters the list in the section that has found the reason to wait, so it misses no change.
/// Loop-owned, in the frame of the request. Lifetime: the file outlives it.
class caching_wait {
public:
    caching_wait(const file_section& held, request& r, file_state& file) : changed_(r.loop()), file_(file) {
        file_.add_caching_waiter(held, changed_);
    }
    caching_wait(const caching_wait&) = delete;
    caching_wait& operator=(const caching_wait&) = delete;
    ~caching_wait() {
        const file_section held(file_);
        file_.remove_caching_waiter(held, changed_);
    }

    /// Returns `waited` or `cancelled`. Suspends: up to limits::break_within,
    /// with an interim reply.
    [[nodiscard]] io::task<caching_outcome> wait(request& r) noexcept;

private:
    one_shot_event<wire::nt_status> changed_;
    file_state& file_;
};

/// Decides the breaks of the leases and oplocks that conflict with an open. Returns `clear`, or
/// `blocked` where the rules say that one of them has to answer first.
[[nodiscard]] caching_outcome decide_breaks_for_open(const file_section& held, request& r, file_state& file,
                                                     const caching_intent& intent,
                                                     decided_breaks& breaks) noexcept;

/// The lease a CREATE asks to share, if there is one of its client and key. Null: none, or none was
/// asked for. It may belong to another file, or have ended.
[[nodiscard]] std::shared_ptr<lease> find_lease(const request& r, const wire::create_args& args) noexcept;

/// Whether a CREATE asks for a lease that a directory can have: of version 2, with read caching,
/// and on a connection that has agreed on them.
[[nodiscard]] bool wants_directory_lease(const request& r, const wire::create_args& args) noexcept;

/// The cache of the lease that a CREATE asks for.
[[nodiscard]] std::optional<cache_identity> cache_of(const request& r,
                                                     const wire::create_args& args) noexcept;
/// Whether a lease, of the file of the section, shares that cache.
[[nodiscard]] bool is_of_cache(const file_section& held, const lease& of,
                               const cache_identity& cache) noexcept;

/// The caching of an open, as the reply to its CREATE says it.
struct caching_reply {
    wire::oplock_level level = wire::oplock_level::none;
    std::optional<wire::lease> lease{};
    bool has_handle = false;

    void put_into(wire::create_reply& reply) const noexcept {
        reply.oplock_level = level;
        reply.contexts.lease = lease;
    }
};

/// Grants a new open, the result of `action`, as much of the requested caching as the other opens
/// allow. Returns the granted caching. Breaks of it wait for the reply (request::grants).
/// `may_cache`: false if the facts in the reply may be outdated.
[[nodiscard]] caching_reply grant_caching(const file_section& held, request& r, open& fresh,
                                          const wire::create_args& args, bool may_cache,
                                          wire::create_action action);
[[nodiscard]] caching_reply caching_of(const file_section& held, const open& one) noexcept;
/// Records that the reply of `r` announces the caching of an open: breaks wait for that reply.
void record_grant(const file_section& held, request& r, open& one);
/// Whether the client of an open caches its handle.
[[nodiscard]] bool caches_handle(const file_section& held, const open& one) noexcept;

/// The names of a directory, or what they show, have changed: breaks all its leases, except those
/// of `except`. Does not wait.
void end_directory_caching(const file_section& held, server_context& host, file_state& directory,
                           const std::optional<cache_identity>& except, decided_breaks& breaks) noexcept;

/// The content of a file changes, or bytes of it are locked, through `by`: breaks the read caching
/// of all others. Does not wait.
void end_read_caching(const file_section& held, server_context& host, file_state& file, const open* by,
                      decided_breaks& breaks) noexcept;

/// A file will be renamed or removed: asks the clients that keep it open only to cache it to close
/// it, and waits for all of them. Suspends. After `waited` the caller repeats all its checks.
[[nodiscard]] io::task<caching_outcome> break_caches_for_name_change(request& r, file_state& file,
                                                                     const open* by) noexcept;
/// The same for a file that is removed by the end of an open: does not wait.
void end_handle_caching(const file_section& held, server_context& host, file_state& file, const open* by,
                        decided_breaks& breaks) noexcept;
/// Whether another open caches a handle of the file, which conflicts with a change of its name.
[[nodiscard]] bool others_cache_handle(const file_section& held, file_state& file, const open* by) noexcept;

}  // namespace sluice::smb::server
