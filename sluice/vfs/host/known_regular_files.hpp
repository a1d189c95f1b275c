#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace sluice::vfs {

/// Paths that led to a regular file when they were last followed. Other kinds of files must not be
/// opened as a test, because the writer of a fifo would treat the server as its reader, and opening
/// a device may have any effect. A regular file may be opened, and a path that led to one recently
/// probably still does. The caller checks the kind of the opened file.
///
/// A hint: paths replace each other, and a path is mistaken for another with a probability of
/// 2^-63. Atomic: every access is relaxed, because a hint does not order other accesses. Thread
/// safety: any thread. Allocates: nothing. Complexity: O(length of the path).
class known_regular_files {
public:
    [[nodiscard]] bool has(std::string_view path) const noexcept {
        const std::uint64_t mark = mark_of(path);
        return marks_[mark % count].load(std::memory_order_relaxed) == mark;
    }
    void record(std::string_view path) noexcept {
        const std::uint64_t mark = mark_of(path);
        marks_[mark % count].store(mark, std::memory_order_relaxed);
    }
    void forget(std::string_view path) noexcept {
        const std::uint64_t mark = mark_of(path);
        std::uint64_t expected = mark;
        marks_[mark % count].compare_exchange_strong(expected, 0, std::memory_order_relaxed);
    }

private:
    // A prime, so that the upper bits of a mark are used.
    static constexpr std::size_t count = 4093;

    // Never zero, which marks an empty entry.
    [[nodiscard]] static std::uint64_t mark_of(std::string_view path) noexcept {
        return std::hash<std::string_view>{}(path) | 1U;
    }

    std::array<std::atomic<std::uint64_t>, count> marks_{};
};

}  // namespace sluice::vfs
