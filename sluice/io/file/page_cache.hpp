#pragma once

#include <cstdint>
#include <optional>

#include "sluice/io/file/file_handle.hpp"

namespace sluice::io {

/// Returns the size of the pages in which the kernel keeps files.
[[nodiscard]] extent_type page_bytes() noexcept;

/// Returns whether all of a range, up to the file's end, is in memory, so that reading or sending
/// it waits for no device. The result is a snapshot: the kernel may evict the pages right after.
/// Returns false where the kernel cannot report it. Uses cachestat (Linux 6.5), whose time is
/// linear in the pages; before it, checks whether a byte at each end can be read at once.
/// Allocates, blocks: no. Thread safety: any thread.
[[nodiscard]] bool is_cached(const file_handle& file, extent_pair range) noexcept;

/// Returns how many pages of a range are in memory. If there are none, a pipe or a socket that was
/// given pages of the range does not see later writes to it. Returns std::nullopt where the kernel
/// cannot report it (before Linux 6.5). Allocates, blocks: no. Thread safety: any thread.
[[nodiscard]] std::optional<std::uint64_t> cached_pages(const file_handle& file, extent_pair range) noexcept;

/// Returns another descriptor of the same open file, without a multiplexer, for callers that must
/// keep the file open themselves. Errors: EMFILE. Allocates: nothing. Thread safety: any thread.
[[nodiscard]] result<file_handle> duplicate(const file_handle& file) noexcept;

}  // namespace sluice::io
