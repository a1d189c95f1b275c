#pragma once

#include <expected>
#include <optional>

#include "sluice/smb/server/metadata/file_name.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

// Previous versions: files of a share as they were at the time of a snapshot.

namespace sluice::smb::server {

/// Returns the time whose files a CREATE asks for, by a SMB2_CREATE_TIMEWARP_TOKEN ([MS-SMB2]
/// 2.2.13.2.7) or by a component "@GMT-…" of its name, which it removes from `name`. Returns
/// std::nullopt if it asks for the present ones. A share without snapshots has no such components:
/// there, they are names. Errors: OBJECT_NAME_NOT_FOUND if it asks for two times, or for one that
/// no snapshot can have.
[[nodiscard]] std::expected<std::optional<vfs::snapshot_time>, wire::nt_status> asked_time(
    const share& of, const wire::create_request_contexts& contexts, file_name& name);

/// Returns whether a path has a component that is the time of a snapshot. Allocates: nothing.
[[nodiscard]] bool names_snapshot(std::string_view path) noexcept;

/// Makes the request use the files of its tree as they were at that time: request::files(). Errors:
/// OBJECT_NAME_NOT_FOUND if there is no snapshot of that time; INSUFFICIENT_RESOURCES if the client
/// uses too many. Suspends. Allocates: the snapshot's volume, if the client does not use it yet.
[[nodiscard]] io::task<wire::nt_status> enter_past(request& r, vfs::snapshot_time when);

/// Returns the error of a CREATE that would change something in the past ([MS-FSA] 2.1.5.1: the
/// volume is read-only). An open for writing alone does not: programs that restore files ask for
/// more rights than they use.
[[nodiscard]] wire::nt_status check_for_past(const wire::create_args& args) noexcept;

}  // namespace sluice::smb::server
