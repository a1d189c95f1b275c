#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::shared_lines {

enum class access_kind : std::uint8_t {
    read,
    write,
    change,   ///< an atomic read-modify-write
    acquire,  ///< a compare-and-swap, or the lock of a POSIX mutex
    release,  ///< an exchange, or its unlock
};

/// One access to memory, of code that was compiled with -fsanitize=thread.
struct access {
    std::uintptr_t address = 0;
    std::uintptr_t code = 0;  // the instruction after the access
    std::uint32_t bytes = 0;
    access_kind kind = access_kind::read;
    std::uint8_t core = 0;
};

/// The accesses of the threads that stand for cores of a machine. access_trace.cpp implements the
/// functions that the compiler calls at each access, and is linked in place of TSan's run-time
/// library. So the accesses of the kernel, and of libraries compiled without, are not recorded.
///
/// Thread safety: any thread. At most one of them records for a core. Allocates: nothing on the
/// heap. Complexity: constant for each access.
struct access_trace {
    static constexpr std::size_t accesses_max = std::size_t{1} << 23;
    static constexpr int no_core = -1;

    /// Makes the accesses of the calling thread those of a core, below 64. Returns the core before.
    static int become_core(int number) noexcept;
    /// Discards the recorded accesses, and begins.
    static void begin() noexcept;
    static void end() noexcept;

    /// Returns the recorded accesses, in their order. Valid until begin().
    [[nodiscard]] static const access* recorded() noexcept;
    [[nodiscard]] static std::size_t count() noexcept;
    /// Returns whether there were more than `accesses_max`: then some are missing.
    [[nodiscard]] static bool is_cut() noexcept;
};

}  // namespace sluice::shared_lines
