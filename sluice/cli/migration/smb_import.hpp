#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/cli/migration/smb_conf.hpp"
#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// The kind of a report about a parameter. `wider`: users have more access than with Samba.
/// `differs`: it has a setting with another meaning.
enum class smb_note_kind : std::uint8_t { error, wider, none, differs, standard };

struct smb_note {
    smb_note_kind kind = smb_note_kind::none;
    smb_place place{};
    std::string subject;  // "[photos] create mask"; the values are not shown, which may be secret
    std::string text;
};

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

/// Returns "smb.conf: line 3: [photos] create mask: no equivalent: …" without control characters.
[[nodiscard]] std::string text_of(const smb_note& note);

}  // namespace sluice::cli
