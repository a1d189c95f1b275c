#pragma once

#include <cstdint>
#include <optional>

#include "sluice/io/file/file_handle.hpp"

namespace sluice::io {

/// What the kernel keeps files in pieces of.
[[nodiscard]] extent_type page_bytes() noexcept;

/// Whether all of a range, as far as the file has it, is in memory, so that to read or send it waits for no
/// device. A look that ages: the kernel may give the memory away right after. False where the kernel cannot
/// say. Asks cachestat (Linux 6.5), which costs some 0.5 us and 1 us more per MiB; before it, whether a byte
/// at each end could be read at once. Allocates, blocks: no. Thread safety: any thread.
[[nodiscard]] bool is_cached(const file_handle& file, extent_pair range) noexcept;

/// How many pages of a range are in memory: none left means that nobody who was given pages of it before, a
/// pipe or a socket, sees what is written there from now on. Nothing where the kernel cannot say (before
/// Linux 6.5). Allocates, blocks: no. Thread safety: any thread.
[[nodiscard]] std::optional<std::uint64_t> cached_pages(const file_handle& file, extent_pair range) noexcept;

/// One more descriptor of the same open file, with no multiplexer: for who must keep it open for himself.
/// Errors: EMFILE. Allocates: nothing. Thread safety: any thread.
[[nodiscard]] result<file_handle> duplicate(const file_handle& file) noexcept;

}  // namespace sluice::io
