#pragma once

#include <expected>
#include <string>
#include <vector>

#include "sluice/cli/migration/smb_conf.hpp"
#include "sluice/cli/migration/smb_draft.hpp"

namespace sluice::cli {

/// The section [homes] as the setting `homes` of the server, which has no settings of its own.
struct smb_homes {
    std::string directory;        // that contains those of the users
    bool is_of_accounts = false;  // Samba uses the home directories of the accounts
    // The parameters that have no equivalent.
    std::vector<const smb_parameter*> unsupported{};
};

/// The reason why the section is not imported.
struct smb_homes_refusal {
    smb_place place{};
    std::string what{};  // " path", or empty
    std::string text{};
};

/// Converts the section [homes]. Errors: the directory of a user is not DIR/USER, or users would
/// have more access than with Samba. Allocates: the result, which refers to the section. Pure.
[[nodiscard]] std::expected<smb_homes, smb_homes_refusal> converted_smb_homes(const smb_draft& homes);

}  // namespace sluice::cli
