#pragma once

#include "sluice/smb/server/request.hpp"
#include "sluice/smb/wire/create.hpp"

// What clients may keep to themselves of a file, oplocks and leases, and how they are told when somebody else
// comes ([MS-SMB2] 3.3.4.6, 3.3.4.7, 3.3.5.9.8, 3.3.5.22; [MS-FSA] 2.1.5.17).

namespace sluice::smb::server {

/// An open about to be made, as far as it concerns those who cache the file.
struct caching_intent {
    wire::access_mask access = wire::access_mask::none;
    wire::share_access share = wire::share_access::none;
    bool overwrites = false;             // the content goes
    const wire::lease* lease = nullptr;  // asked for: the holder of the same key is not told
};

enum class caching_outcome : std::uint8_t {
    clear,      ///< nobody was in the way
    waited,     ///< somebody was told and has answered, or run out of time: look at the file again
    cancelled,  ///< the request was ended meanwhile
};

/// Tells everybody whose caching an open would harm, and waits until they have answered, where the rules say
/// so. Suspends: up to limits::break_within, with an interim reply.
[[nodiscard]] io::task<caching_outcome> make_way_for_open(request& r, file_state& file,
                                                          caching_intent intent) noexcept;

/// Grants a new open as much of the caching it asks for as the others leave, and says so in the reply.
void grant_caching(request& r, open& fresh, const wire::create_args& args, wire::create_reply& reply);

/// The content of a file changes, or bytes of it are locked, through `by`: nobody else may go on reading from
/// his cache. Waits for nobody.
void end_read_caching(smb_server& host, file_state& file, const open* by) noexcept;

/// A file, or a directory with files in it, is about to be renamed or removed: those who keep it open only
/// to cache it are asked to close it, and waited for. Suspends.
[[nodiscard]] io::task<caching_outcome> make_way_for_name_change(request& r, file_state& file,
                                                                 const open* by) noexcept;

/// An open ends: what it cached does not matter any more, and who waited for its answer goes on.
void end_caching(smb_server& host, open& ending) noexcept;

}  // namespace sluice::smb::server
