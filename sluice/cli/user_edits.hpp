#pragma once

#include <memory>
#include <string>

#include "sluice/base/result.hpp"

namespace sluice::cli {

/// Has those who edit the users file at `path` take turns: an edit_exclusion for user_database. Errors: as
/// write_hold::take. Blocks: for ten seconds at most.
[[nodiscard]] result<std::shared_ptr<void>> exclude_editors(const std::string& path);

}  // namespace sluice::cli
