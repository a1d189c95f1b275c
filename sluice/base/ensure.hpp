#pragma once

namespace sluice {

/// Reports a broken invariant on standard error and stops the program. Never returns.
/// Thread safety: any thread. Allocates: nothing.
[[noreturn]] void ensure_failed(const char* condition, const char* why, const char* file, int line) noexcept;

}  // namespace sluice

/// Stops the program if a condition does not hold that only a programming error can break. Enabled
/// in release builds, because continuing with a broken invariant loses data. `ENSURE(condition)` or
/// `ENSURE(condition, "the violated invariant")`.
#define ENSURE(condition, ...)              \
    (static_cast<bool>(condition) ? void(0) \
                                  : ::sluice::ensure_failed(#condition, "" __VA_ARGS__, __FILE__, __LINE__))
