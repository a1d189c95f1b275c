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

/// Returns a host or network of `hosts allow` as an address with an optional prefix: "192.168.1."
/// is "192.168.1.0/24". An empty text: it is a name, or has another form.
[[nodiscard]] std::string smb_host(std::string_view text);

}  // namespace sluice::cli
