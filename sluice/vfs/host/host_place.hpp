#pragma once

#include "sluice/base/result.hpp"
#include "sluice/io/call/handle.hpp"
#include "sluice/io/path/file_status.hpp"
#include "sluice/vfs/node_names.hpp"

// The places and identities of files in a directory of the host.

namespace sluice::vfs {

/// The fields of a status that a name_identity consists of.
constexpr io::stat_fields identifying_fields = io::stat_fields::inode | io::stat_fields::changed;

[[nodiscard]] file_key key_of(const io::file_status& status) noexcept;
[[nodiscard]] name_identity identity_in(const io::file_status& status) noexcept;

/// Returns the place of an open file, as node_names::place(). `asked` is a descriptor of the same
/// file for its status. Allocates: the name. Blocks: for the file system.
[[nodiscard]] result<name_place> place_on_host(const io::handle& open, const io::handle& asked) noexcept;

}  // namespace sluice::vfs
