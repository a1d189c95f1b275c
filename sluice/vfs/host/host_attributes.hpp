#pragma once

#include <functional>

#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/host/host_metadata.hpp"
#include "sluice/vfs/host/stream/stream_record.hpp"
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
/// Errors: ENOSPC, also for a value that is too large for the file system; EDQUOT, EROFS, EPERM;
/// EEXIST and ENODATA as `create` requests.
[[nodiscard]] result<void> store_attribute(
    const io::handle& open, const std::string& attribute, std::span<const std::byte> value,
    io::xattr_creation create = io::xattr_creation::if_needed) noexcept;

/// The streams of a file that are attributes, and whether it refers to others.
struct small_streams {
    std::vector<stream_info> streams{};
    bool has_reference = false;
};
[[nodiscard]] result<small_streams> list_small_streams(const io::handle& open);

/// The attribute of a stream, ignoring case; empty: none.
struct found_small_stream {
    std::string attribute{};
    bool has_reference = false;  // known if there is none
};
/// Errors: ENAMETOOLONG, EIO; EOPNOTSUPP. Complexity: linear in the attributes, unless the case is
/// the same.
[[nodiscard]] result<found_small_stream> find_small_stream(const io::handle& open, std::string_view name);
[[nodiscard]] result<std::vector<extended_attribute>> list_extended_attributes(const io::handle& open);
[[nodiscard]] result<void> change_extended_attribute(const io::handle& open, std::string_view name,
                                                     std::span<const std::byte> value);
[[nodiscard]] result<std::vector<std::byte>> load_security(const io::handle& open);
[[nodiscard]] result<void> store_security(const io::handle& open, std::span<const std::byte> descriptor);

/// Sets the values in `wanted`, except the mark of compression: times of access and modification by
/// the kernel, the others, and the times that the kernel cannot report, in the stored metadata.
/// `before` is the current metadata.
[[nodiscard]] result<void> apply_change(const io::handle& open, const metadata_change& wanted,
                                        const metadata& before) noexcept;

}  // namespace sluice::vfs
