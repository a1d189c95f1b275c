#pragma once

#include <cstdint>
#include <string>

#include "sluice/cli/migration/smb_conf.hpp"

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

/// Returns "smb.conf: line 3: [photos] create mask: no equivalent: …" without control characters.
[[nodiscard]] std::string text_of(const smb_note& note);

}  // namespace sluice::cli
