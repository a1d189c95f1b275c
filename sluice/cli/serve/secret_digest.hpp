#pragma once

#include <array>
#include <cstddef>

#include "sluice/cli/serve/setting_records.hpp"

namespace sluice::cli {

/// Returns a keyed digest of a value with its secrets, to find out whether a value whose secrets
/// are not recorded has changed. The key is random and never leaves the process, so that nobody can
/// try passwords with a digest. Zeros: the value has no secrets.
/// Allocates: a copy of the value. Blocks: early after boot, as system_random. Thread safety: any thread.
[[nodiscard]] std::array<std::byte, 32> secret_digest(std::string_view key, const setting_value& value);

}  // namespace sluice::cli
