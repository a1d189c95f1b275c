#pragma once

#include "sluice/base/bytes.hpp"

namespace sluice::smb::auth {

/// Makes UTF-16LE capital letters in place, unit by unit, as NTLM does with a user's name before it hashes
/// it ([MS-NLMP] 3.3.2). Latin, Greek, Cyrillic and Armenian letters; others stay as they are, which is right
/// for all scripts without two cases. A last odd byte stays, too. Allocates: nothing. Complexity: linear.
void make_upper_case(mutable_bytes utf16) noexcept;

}  // namespace sluice::smb::auth
