#pragma once

#include <string_view>

#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::client {

/// What a status means to who sits in front of the client.
struct status_text {
    wire::nt_status status;
    int code;                  ///< the nearest errno value
    std::string_view meaning;  ///< "no such file or folder"
    std::string_view remedy;   ///< what to do about it; may be empty
};

/// Of a status that is not in the table: EIO, and no words. Complexity: linear in the table.
[[nodiscard]] const status_text& text_of(wire::nt_status status) noexcept;

}  // namespace sluice::smb::client
