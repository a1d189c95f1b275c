#pragma once

#include "sluice/vfs/host/stream/stream_store_names.hpp"

// Internal to the host volume: for the tools that check and repair a store.

namespace sluice::vfs {

/// Returns whether move_streams() would fail because both directories of the ID have streams that
/// cannot be in one: they belong to different files, have one name, or are too many. Errors: EIO.
/// Complexity: n log n in the streams.
[[nodiscard]] result<bool> is_move_ambiguous(const io::path_handle& from, const io::path_handle& to,
                                             const stream_id& id);

/// Moves the directory of an ID from one directory of a store to that of another store in the same
/// mount. If the other store has one, too, the streams are moved one by one, and the emptied
/// directory is removed. An interrupted move can be repeated. Errors: ENOENT; EEXIST if the move is
/// ambiguous; EXDEV; EIO.
[[nodiscard]] result<void> move_streams(const io::path_handle& from, const io::path_handle& to,
                                        const stream_id& id);

}  // namespace sluice::vfs
