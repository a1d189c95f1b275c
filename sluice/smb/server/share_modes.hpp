#pragma once

#include "sluice/smb/wire/access_mask.hpp"
#include "sluice/smb/wire/create.hpp"

namespace sluice::smb::server {

class file_state;

/// Whether an open with these rights, that lets others do so much, can be beside those a file has
/// ([MS-FSA] 2.1.5.1.2.2): each must allow what the other may do. Opens that neither read, write nor remove
/// are in nobody's way.
struct sharing {
    wire::access_mask access = wire::access_mask::none;
    wire::share_access share = wire::share_access::none;
};
/// What of its rights others must have agreed to share.
[[nodiscard]] wire::share_access needs_of(wire::access_mask access) noexcept;
[[nodiscard]] bool can_coexist(const sharing& a, const sharing& b) noexcept;
[[nodiscard]] bool can_join(file_state& file, const sharing& fresh) noexcept;

}  // namespace sluice::smb::server
