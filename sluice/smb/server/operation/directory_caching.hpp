#pragma once

#include "sluice/io/task/task.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/create/create.hpp"

// The leases of directories: their watches, and their breaks ([MS-SMB2] 3.3.4.7, [MS-FSA] 2.1.4.12
// with PARENT_OBJECT). file/cached_directories.hpp has the state.

namespace sluice::smb::server {

/// Watches the directory of an open that is about to be committed, if its CREATE asks for a lease
/// of it. If that is not possible, the directory gets none. Suspends: for the file system.
[[nodiscard]] io::task<void> watch_for_lease(request& r, open& fresh, const wire::create_args& args) noexcept;

/// The names of a directory have changed, or what they show: breaks its leases soon, except those
/// of the cache that the client of `by` has named as that of the directory; `by` may be null. The
/// notification follows the reply to the request that has made the change, if one thread serves
/// both: clients expect this order. On a loop, outside sections. Does not wait. Allocates: if it
/// has leases.
void break_directory_soon(server_context& host, const vfs::file_key& directory, const open* by) noexcept;

/// Examines the events of the change feeds, and breaks the leases of directories that other
/// programs have changed, soon: each directory in a task of its own, so that none waits for the
/// file system of another. On a loop, outside sections. Allocates: a task for each directory with
/// events, at most one at a time.
void examine_directories_soon(server_context& host) noexcept;

/// The feed of a volume has ended: no directory of it can be cached any more. On the first loop.
void end_directory_watches(server_context& host, const vfs::volume& of) noexcept;

/// An open that has written has ended, other than by CLOSE: shows that to the clients that cache
/// its directory. On a loop.
void show_end_of_writes(server_context& host, const std::shared_ptr<open>& ended) noexcept;

}  // namespace sluice::smb::server
