#pragma once

#include "sluice/smb/server/metadata/file_name.hpp"
#include "sluice/smb/server/net/request.hpp"

namespace sluice::smb::server {

/// A new name for an open file or directory, or an additional name.
struct rename_request {
    std::string target;  // as the client wrote it
    bool makes_link = false;
    bool replaces = false;
    bool is_posix = false;  // the replaced file may be open: it stays without a name
    bool ignores_read_only = false;
};

/// Renames or links the file or directory that `one` has open ([MS-FSA] 2.1.5.15.11, 2.1.5.15.6).
/// First asks clients that keep handles only to cache them to close these: handles of the file, of
/// the file at the target, and of entries below a directory. Errors: ACCESS_DENIED (no right, or a
/// conflicting open), OBJECT_NAME_COLLISION, OBJECT_PATH_NOT_FOUND, SHARING_VIOLATION,
/// INVALID_PARAMETER, and those of the file system.
/// Suspends: while others close. Blocks: for the file system.
[[nodiscard]] io::task<wire::nt_status> give_name(request& r, std::shared_ptr<open> one,
                                                  rename_request wish) noexcept;

/// The properties of an existing file at the target of a rename or link.
struct name_taken {
    bool is_same_file = false;
    bool is_directory = false;
    bool is_read_only = false;
    bool is_open = false;
    bool may_be_removed = true;  // by this user
};
/// Returns whether it may be replaced. Errors: OBJECT_NAME_COLLISION, ACCESS_DENIED.
[[nodiscard]] wire::nt_status may_replace(const name_taken& there, const rename_request& wish,
                                          bool source_is_directory) noexcept;

}  // namespace sluice::smb::server
