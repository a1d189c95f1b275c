#pragma once

#include <cstdint>
#include <optional>

#include "sluice/smb/server/journal/journal_storage.hpp"

namespace sluice::smb::server {

/// Returns the version of the journals that this program reads and writes.
[[nodiscard]] std::uint32_t journal_version() noexcept;

/// Returns the version of a journal that a later program has written; std::nullopt if it is not
/// later than ours, or there is no journal. handle_journal::open refuses such a journal with
/// ENOTSUP, and leaves it as it is.
[[nodiscard]] std::optional<std::uint32_t> later_version_in(const journal_storage& storage) noexcept;
[[nodiscard]] std::optional<std::uint32_t> later_version_in(bytes_view journal) noexcept;

}  // namespace sluice::smb::server
