#include "sluice/cli/migration/smb_note.hpp"

#include <fmt/core.h>

#include "sluice/cli/terminal_text.hpp"

namespace sluice::cli {

std::string text_of(const smb_note& note) {
    const std::string place =
        note.place.line == 0 ? note.place.file : fmt::format("{}: line {}", note.place.file, note.place.line);
    const auto kind = [&]() -> std::string {
        switch (note.kind) {
            case smb_note_kind::error:
                return "";
            case smb_note_kind::wider:
                return "no equivalent, so more users have access";
            case smb_note_kind::none:
                return "no equivalent";
            case smb_note_kind::differs:
                return "the meaning of its setting differs";
            case smb_note_kind::standard:
                return "sluice does this by default";
        }
        return "";
    }();
    std::string text;
    for (const std::string& part : {place, note.subject, kind, note.text})
        if (not part.empty()) text += (text.empty() ? "" : ": ") + part;
    return terminal_text(text);
}

}  // namespace sluice::cli
