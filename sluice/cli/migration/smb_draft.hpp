#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "sluice/cli/migration/smb_conf.hpp"
#include "sluice/cli/migration/smb_note.hpp"
#include "sluice/cli/migration/smb_rows.hpp"
#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// The reports so far. A parameter of [global] may apply to many shares.
using smb_reported_notes = std::set<std::tuple<std::string, unsigned, std::string>>;

/// One table of the result, while it is written: that of the server, or of a share.
/// Thread safety: a value. All functions allocate.
struct smb_draft {
    const smb_section& section;  ///< [global] for the server
    const smb_section& global;
    const table_record& known;  ///< the settings that the table may have
    smb_reported_notes& reported;
    std::string lines{};
    std::vector<smb_note> notes{};
    std::set<std::string, std::less<>> settings{};  ///< that `lines` has
    bool is_skipped = false;
    bool is_referral = false;
    bool lacks_restriction = false;  ///< if it is the server: all shares are skipped

    [[nodiscard]] bool is_server() const noexcept { return &section == &global; }

    /// Adds a line, unless the table has the setting already.
    void set(std::string_view key, const setting_value& value);
    void note(smb_note_kind kind, const smb_parameter& about, std::string text);
    /// Reports that the share is not part of the result.
    void skip(const smb_place& place, std::string_view what, std::string text);
    /// Reports a restriction that would be lost: skips the share, or, for the server, all shares.
    void lose(const smb_parameter& about, std::string text);

    /// Returns null if this program does not have the setting of a row.
    [[nodiscard]] const setting_record* setting_of(const smb_row& row) const;
    /// Returns the value in effect: that of the share, else that of [global] when the share began.
    /// Null: neither has the parameter.
    [[nodiscard]] const smb_parameter* effective(std::string_view name) const noexcept;
    [[nodiscard]] bool is_set(std::string_view name, bool otherwise) const;
    /// Returns whether the value in effect is the one that the server has, too.
    [[nodiscard]] bool is_of_server(std::string_view name) const noexcept;
};

}  // namespace sluice::cli
