#pragma once

#include "sluice/smb/wire/create/open_information.hpp"
#include "sluice/smb/wire/fscc/file_attributes.hpp"
#include "sluice/vfs/node.hpp"

// What a file is to clients, made of what it is to the volume, and back.

namespace sluice::smb::server {

/// Attributes as clients see them: never empty, `normal` stands for none.
[[nodiscard]] wire::file_attributes attributes_of(const vfs::metadata& status) noexcept;
/// Of what a client wants a file to have, what a volume can keep.
[[nodiscard]] vfs::dos_attributes dos_attributes_of(wire::file_attributes wanted) noexcept;

/// What CREATE and CLOSE tell. A directory has no size.
[[nodiscard]] wire::open_information open_information_of(const vfs::metadata& status) noexcept;

}  // namespace sluice::smb::server
