#pragma once

#include <string_view>

#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::client {

/// The meaning of a status for a user of the client.
struct status_text {
    wire::nt_status status;
    int code;                  ///< the nearest errno value
    std::string_view meaning;  ///< "no such file or directory"
    std::string_view remedy;   ///< remedy; may be empty
};

/// Returns the text of a status. For an unknown status: EIO, and empty texts. Complexity: linear in
/// the table.
[[nodiscard]] const status_text& text_of(wire::nt_status status) noexcept;

}  // namespace sluice::smb::client
