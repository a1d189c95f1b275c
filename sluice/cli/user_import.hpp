#pragma once

#include <string>

#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {

/// The arguments of `sluice user import`.
struct user_import {
    std::string file;  // as of smbpasswd(5); "-": standard input
    bool replaces = false;
    bool only_prints = false;  // nothing is changed
};

/// Adds the users of a file in the form of smbpasswd(5) to `users`, in one edit, and prints the
/// result for each. Neither hashes nor lines of the file are printed, and the memory that had them
/// is overwritten. Prints the reason and leaves with exit_code::failure if nothing can be imported,
/// or if a line is malformed. Blocks: for the files.
void import_users(smb::server::user_database& users, const user_import& how);

}  // namespace sluice::cli
