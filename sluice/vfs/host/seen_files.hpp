#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace sluice::vfs {

/// Paths that led to a regular file when they were last followed. What else a path may lead to must not be
/// opened to find out: a fifo's writer would take us for its reader, and a device may do anything. A file
/// may, and one that was there a moment ago most likely still is; whoever opens it looks at what he has got.
///
/// A hint: paths are forgotten for others, and once in 2^63 taken for another.
/// Atomic: every access is relaxed, for a hint orders nothing. Thread safety: any thread. Allocates: nothing.
/// Complexity: O(length of the path).
class seen_files {
public:
    [[nodiscard]] bool has(std::string_view path) const noexcept {
        const std::uint64_t mark = mark_of(path);
        return marks_[mark % count].load(std::memory_order_relaxed) == mark;
    }
    void note(std::string_view path) noexcept {
        const std::uint64_t mark = mark_of(path);
        marks_[mark % count].store(mark, std::memory_order_relaxed);
    }
    void forget(std::string_view path) noexcept {
        const std::uint64_t mark = mark_of(path);
        std::uint64_t expected = mark;
        marks_[mark % count].compare_exchange_strong(expected, 0, std::memory_order_relaxed);
    }

private:
    static constexpr std::size_t count = 4093;  // a prime: the upper bits of a mark take part

    // Never zero, which stands for nothing.
    [[nodiscard]] static std::uint64_t mark_of(std::string_view path) noexcept {
        return std::hash<std::string_view>{}(path) | 1U;
    }

    std::array<std::atomic<std::uint64_t>, count> marks_{};
};

}  // namespace sluice::vfs
