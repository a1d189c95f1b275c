#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// How a parameter of Samba becomes a setting.
enum class smb_rule : std::uint8_t {
    copied,      // the value in the form of the setting
    opposite,    // a boolean with the opposite meaning
    account,     // a user or group, without the characters that mark a group
    users,       // a list of users and groups
    hosts,       // a list of hosts
    file_mode,   // permissions, in octal; several parameters have one setting
    patterns,    // a list that slashes separate
    megabytes,   // a number of megabytes
    referral,    // a share of another server
    converted,   // the importer has code for it
    standard,    // sluice does this; `advice` may state more
    none,        // there is no equivalent; `advice` states a remedy
    restricting  // as none, and without it users have more access than with Samba
};

/// One parameter. To support another: add a row. If this program does not have the setting, the
/// parameter is reported as one without an equivalent.
struct smb_row {
    // As canonical_smb_name(). "recycle:*" is every name with this beginning.
    std::string_view parameter;
    smb_rule rule = smb_rule::none;
    std::string_view setting{};  // empty: none
    std::string_view advice{};   // for the report, if the program has no setting
    // The type of the setting, if its reader examines the value itself.
    setting_kind kind = setting_kind::text;
    std::string_view difference{};  // for the report, if it has one
};

/// The parameters of a share, which [global] may have as defaults.
[[nodiscard]] std::span<const smb_row> share_rows() noexcept;
/// The parameters of the server.
[[nodiscard]] std::span<const smb_row> server_rows() noexcept;
/// The modules of `vfs objects`.
[[nodiscard]] std::span<const smb_row> module_rows() noexcept;

/// Returns null if no row is for this parameter.
[[nodiscard]] const smb_row* row_of(std::span<const smb_row> rows, std::string_view parameter) noexcept;

}  // namespace sluice::cli
