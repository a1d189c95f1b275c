#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sluice/cli/migration/smb_conf.hpp"
#include "sluice/cli/migration/smb_note.hpp"
#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// A configuration of sluice with comments, and the same comments as a list.
struct smb_imported {
    std::string toml;
    std::vector<smb_note> notes;
    std::size_t shares = 0;
};

/// Returns the configuration that serves the same shares. `server` and `share` have the settings
/// that this program knows: a parameter whose setting is not there is reported. A share whose
/// restrictions cannot be kept for certain is skipped, and reported. Allocates: the result. Pure.
[[nodiscard]] smb_imported import_smb_conf(const smb_conf& from, const table_record& server,
                                           const table_record& share);

}  // namespace sluice::cli
