#pragma once

#include <string>
#include <vector>

#include "sluice/cli/smb/file_copier.hpp"

namespace sluice::cli {

// The work of get and put, which cp uses, too. Both print the reason and leave on failure. Block.

/// Copies a file or directory of a share to `target`, or into the current directory if that is
/// empty.
void copy_from_share(const std::string& url, const std::string& target, const copy_options& how);

/// Copies files and directories to the URL that is the last operand.
void copy_to_share(const std::vector<std::string>& operands, const copy_options& how);

}  // namespace sluice::cli
