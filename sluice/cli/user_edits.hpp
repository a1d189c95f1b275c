#pragma once

#include <memory>
#include <string>

#include "sluice/smb/server/session/user_database.hpp"

namespace sluice::cli {

/// Serialises editors of the users file at `path`: an edit_exclusion for user_database. Errors: as
/// writer_lock::take. Blocks: for at most ten seconds.
[[nodiscard]] result<std::shared_ptr<smb::server::users_edit>> exclude_editors(const std::string& path);

}  // namespace sluice::cli
