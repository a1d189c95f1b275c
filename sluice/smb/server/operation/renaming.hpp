#pragma once

#include "sluice/smb/server/metadata/file_name.hpp"
#include "sluice/smb/server/net/request.hpp"

namespace sluice::smb::server {

/// A new name for what is open, or one name more.
struct rename_request {
    std::string target;  // as the client wrote it
    bool makes_link = false;
    bool replaces = false;
    bool is_posix = false;  // what is replaced may be open: it lives on without a name
    bool ignores_read_only = false;
};

/// Renames or links what `one` has open ([MS-FSA] 2.1.5.15.11, 2.1.5.15.6). Whoever keeps the file, what
/// stands in the new place, or what lies beneath a directory open only to cache it is asked to close first.
/// Errors: ACCESS_DENIED (no right, or something in the way is open), OBJECT_NAME_COLLISION,
/// OBJECT_PATH_NOT_FOUND, SHARING_VIOLATION, INVALID_PARAMETER, and those of the file system.
/// Suspends: while others close. Blocks: for the file system.
[[nodiscard]] io::task<wire::nt_status> give_name(request& r, std::shared_ptr<open> one,
                                                  rename_request wish) noexcept;

/// What stands where a name is to go, as far as the rules care.
struct name_taken {
    bool is_same_file = false;
    bool is_directory = false;
    bool is_read_only = false;
    bool is_open = false;
    bool may_be_removed = true;  // by this user
};
/// Whether it may be replaced. Errors: OBJECT_NAME_COLLISION, ACCESS_DENIED.
[[nodiscard]] wire::nt_status may_replace(const name_taken& there, const rename_request& wish,
                                          bool source_is_directory) noexcept;

}  // namespace sluice::smb::server
