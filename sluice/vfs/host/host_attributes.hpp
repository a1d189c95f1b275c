#pragma once

#include <functional>

#include "sluice/vfs/host/host_metadata.hpp"
#include "sluice/vfs/node_attached.hpp"

// Internal to the host volume: extended attributes as streams, EAs and security
// descriptors of an open file.

namespace sluice::vfs {

/// Returns the full name of the attribute with `prefix` and this name, ignoring case. Errors:
/// ENOENT if there is none; EOPNOTSUPP; EIO. Allocates: yes. Complexity: linear in the file's
/// attributes.
[[nodiscard]] result<std::string> find_attribute(const io::handle& open, std::string_view prefix,
                                                 std::string_view name);

/// Returns the value of the attribute with exactly this name. Errors: ENOENT, EIO.
[[nodiscard]] result<std::vector<std::byte>> load_attribute(const io::handle& open,
                                                            const std::string& attribute);
/// Errors: ENOSPC, also for a value that is too large for the file system; EDQUOT, EROFS, EPERM.
[[nodiscard]] result<void> store_attribute(const io::handle& open, const std::string& attribute,
                                           std::span<const std::byte> value) noexcept;

[[nodiscard]] result<std::vector<stream_info>> list_streams(const io::handle& open);
[[nodiscard]] result<std::vector<extended_attribute>> list_extended_attributes(const io::handle& open);
[[nodiscard]] result<void> change_extended_attribute(const io::handle& open, std::string_view name,
                                                     std::span<const std::byte> value);
[[nodiscard]] result<std::vector<std::byte>> load_security(const io::handle& open);
[[nodiscard]] result<void> store_security(const io::handle& open, std::span<const std::byte> descriptor);

/// Sets the values in `wanted`: times by the kernel, the others in the stored metadata. `before` is
/// the current metadata.
[[nodiscard]] result<void> apply_change(const io::handle& open, const metadata_change& wanted,
                                        const metadata& before) noexcept;

}  // namespace sluice::vfs
