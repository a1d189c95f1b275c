#pragma once

#include <span>

#include "sluice/io/call/handle.hpp"
#include "sluice/io/path/path_view.hpp"

// Extended attributes of open files: small named values, separate from the content, such as
// "user.comment". On a handle of mode none, attr_read or attr_write they are accessed through
// /proc.
namespace sluice::io {

/// Reads an attribute into `storage`, and returns the filled front of it. Errors: ENODATA if there
/// is no attribute of that name; ERANGE if the storage is too small (xattr_bytes returns the size
/// needed); EOPNOTSUPP; EINVAL, ENAMETOOLONG for the name. Allocates: nothing. Blocks: for the file
/// system.
[[nodiscard]] result<std::span<std::byte>> fetch_xattr(const handle& open, path_view name,
                                                       std::span<std::byte> storage) noexcept;

/// Reads an attribute of the entry `entry` (a plain name) of an open directory; a symbolic link is
/// not followed. One system call, and no descriptor, from Linux 6.13 on; before, through /proc,
/// which takes several times as long. For many files at a time: errors name neither entry nor
/// attribute. Errors: as fetch_xattr; ENOENT; EINVAL if `entry` is not a valid name. Allocates:
/// nothing. Blocks: for the file system.
[[nodiscard]] result<std::span<std::byte>> fetch_xattr_at(const handle& directory, path_view entry,
                                                          path_view name,
                                                          std::span<std::byte> storage) noexcept;

/// Returns the present size of an attribute in bytes. Errors: as fetch_xattr.
[[nodiscard]] result<std::size_t> xattr_bytes(const handle& open, path_view name) noexcept;

enum class xattr_creation : std::uint8_t { if_needed, only_if_not_exist, replace_existing };

/// Sets an attribute, atomically. Errors: EEXIST; ENODATA if one to replace does not exist; ENOSPC,
/// EDQUOT; E2BIG, ERANGE (too long); EPERM, EACCES; EROFS; EOPNOTSUPP. Allocates: nothing. Blocks:
/// for the file system.
[[nodiscard]] result<void> store_xattr(const handle& open, path_view name, std::span<const std::byte> value,
                                       xattr_creation create = xattr_creation::if_needed) noexcept;

/// Removes an attribute. Errors: ENODATA, and as store_xattr.
[[nodiscard]] result<void> remove_xattr(const handle& open, path_view name) noexcept;

/// Returns the names of all attributes that the caller may see, each followed by a zero, in
/// `storage` (64 KiB always suffices on Linux); take_xattr_name iterates over them. Errors: ERANGE
/// if the storage is too small; EOPNOTSUPP. Allocates: nothing. Blocks: for the file system.
[[nodiscard]] result<std::string_view> list_xattrs(const handle& open, std::span<char> storage) noexcept;

/// Removes the first name from a list of list_xattrs and returns it; empty when there is none.
[[nodiscard]] constexpr std::string_view take_xattr_name(std::string_view& list) noexcept {
    const std::string_view name = list.substr(0, list.find('\0'));
    list.remove_prefix(name.size() < list.size() ? name.size() + 1 : list.size());
    return name;
}

}  // namespace sluice::io
