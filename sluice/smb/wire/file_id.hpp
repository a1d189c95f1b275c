#pragma once

#include "sluice/base/bytes.hpp"
#include "sluice/base/endian.hpp"

namespace sluice::smb::wire {

/// SMB2_FILEID, [MS-SMB2] 2.2.14.1: identifies an open. The server chooses both parts. The
/// persistent part survives a reconnection of the client. Also the wire format.
struct file_id {
    le64 persistent_part;  // 0
    le64 volatile_part;    // 8

    [[nodiscard]] friend constexpr bool operator==(const file_id&, const file_id&) noexcept = default;
};
static_assert(sizeof(file_id) == 16 and wire_type<file_id>);

/// In a related compound: the open that the preceding message created or used ([MS-SMB2]
/// 3.3.5.2.7.2).
inline constexpr file_id file_id_of_previous{.persistent_part = le64(~0ULL), .volatile_part = le64(~0ULL)};

}  // namespace sluice::smb::wire
