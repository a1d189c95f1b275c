#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/cli/migration/smb_rows.hpp"

namespace sluice::cli {

/// A value of Samba in the form of a setting.
struct smb_converted {
    setting_value value{};
    std::vector<std::string> skipped{};  // elements of a list that have no equivalent
};

/// Converts a value by the rule of its row, for a setting of this type. Errors: the rule that it
/// violates. Allocates: the result. Pure.
[[nodiscard]] std::expected<smb_converted, std::string> converted_smb_value(std::string_view value,
                                                                            smb_rule rule, setting_kind kind);

/// The mode of new files, or of new directories.
struct smb_mode_rule {
    unsigned usual = 0;      // without a mask
    unsigned needed = 0;     // bits without which the setting is invalid
    unsigned permitted = 0;  // bits that the setting can have
};
/// Returns the mode that a mask and a mode to force result in, as octal digits. Errors: the rule
/// that they violate. Allocates: the text. Pure.
[[nodiscard]] std::expected<std::string, std::string> smb_mode(std::string_view mask, std::string_view force,
                                                               const smb_mode_rule& rule);

}  // namespace sluice::cli
