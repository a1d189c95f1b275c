#pragma once

#include "sluice/smb/wire/create/open_information.hpp"
#include "sluice/smb/wire/fscc/file_attributes.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/guid.hpp"
#include "sluice/vfs/volume.hpp"

// Converts the attributes of a file between those of a volume and those that clients see.

namespace sluice::smb::server {

/// Attributes as clients see them: never empty, `normal` stands for none.
[[nodiscard]] wire::file_attributes attributes_of(const vfs::metadata& status) noexcept;
/// Returns the part of the attributes a client wants that a volume can store.
[[nodiscard]] vfs::dos_attributes dos_attributes_of(wire::file_attributes wanted) noexcept;

/// Returns the number of a file as a client sees it where numbers have 128 bits.
[[nodiscard]] wire::file_number_128 wide_file_number(std::uint64_t number) noexcept;

/// Returns the object ID of a file or of a volume ([MS-FSCC] 2.1). It is never empty, and lasts as
/// long as the file or the volume.
/// @{
[[nodiscard]] wire::guid object_id_of(const vfs::metadata& file) noexcept;
[[nodiscard]] wire::guid object_id_of(const vfs::volume_identity& volume) noexcept;
/// @}

/// Returns the attributes in the replies to CREATE and CLOSE. A directory has no size.
[[nodiscard]] wire::open_information open_information_of(const vfs::metadata& status) noexcept;

}  // namespace sluice::smb::server
