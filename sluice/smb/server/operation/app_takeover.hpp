#pragma once

#include <optional>

#include "sluice/smb/server/open/app_instance.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/vfs/node.hpp"

// Applications that run on one client at a time, and on another after a failure: the new instance
// takes over the files of the old one ([MS-SMB2] 3.3.5.9.13).

namespace sluice::smb::server {

class open;
class request;

/// The instance that a CREATE names in its contexts. Returns std::nullopt if it names none, names
/// an ID of zeros without a version, or the dialect has no instances. Without a version, zeros may
/// be those of a client that has no ID.
[[nodiscard]] std::optional<app_instance> app_instance_in(
    wire::dialect agreed, const wire::create_request_contexts& asked) noexcept;
/// The same for a CREATE of this request.
[[nodiscard]] std::optional<app_instance> app_instance_in(const request& r,
                                                          const wire::create_request_contexts& asked);

/// Returns whether `fresh` may take over files from `held`: a version is newer than a lower one,
/// and than none.
[[nodiscard]] bool is_newer(const app_instance& fresh, const app_instance& held) noexcept;

enum class take_over : std::uint8_t {
    none,     ///< no other instance has the file open
    ended,    ///< opens have ended: check the file again
    refused,  ///< another instance is as new, or newer: FILE_FORCED_CLOSED
};

/// Ends the opens that another instance of an application has of a file: those of another client,
/// opened by the same name in the same share with the same ID. The user of `fresh` must be allowed
/// to read the file, because every open of an application has the same ID, so that knowing it
/// proves nothing. Writes of the ended opens may still be in progress: the caller waits for them
/// (caching_intent::takes_over).
[[nodiscard]] take_over take_over_file(const request& r, const app_instance& fresh, const vfs::node& node);

}  // namespace sluice::smb::server
