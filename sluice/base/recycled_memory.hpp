#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>

#include "sluice/base/ensure.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLUICE_RECYCLES_MEMORY 0
#endif
#endif
#if not defined(SLUICE_RECYCLES_MEMORY)
#define SLUICE_RECYCLES_MEMORY 1
#endif

namespace sluice {

/// Memory for small, short-lived objects, and for containers of them: a released block is kept for
/// the next allocation of its size. For `std::pmr` containers and `std::allocate_shared`.
///
/// Keeps at most `kept_bytes_max` of unused blocks. Other blocks, and those larger than
/// `block_bytes_max`, return to the heap. With AddressSanitizer it keeps nothing, so that a use
/// after free is detected. Thread safety: one thread at a time. Allocates: when no block of the
/// size is kept. Complexity: O(1). Outlives all objects in it (ENSURE).
class recycled_memory final : public std::pmr::memory_resource {
public:
    static constexpr std::size_t block_bytes_max = 2048;

    explicit recycled_memory(std::size_t kept_bytes_max = std::size_t{4} << 20) noexcept
        : kept_bytes_max_(SLUICE_RECYCLES_MEMORY ? kept_bytes_max : 0) {}
    recycled_memory(const recycled_memory&) = delete;
    recycled_memory& operator=(const recycled_memory&) = delete;
    ~recycled_memory() override;

    /// Returns the bytes of unused blocks.
    [[nodiscard]] std::size_t kept_bytes() const noexcept { return kept_bytes_; }

private:
    struct block {
        block* next;
    };
    static constexpr std::size_t step_bytes = 32;
    static constexpr std::size_t classes = block_bytes_max / step_bytes + 1;

    [[nodiscard]] static constexpr std::size_t class_of(std::size_t bytes) noexcept {
        return (bytes + step_bytes - 1) / step_bytes;
    }
    [[nodiscard]] static constexpr bool is_kept(std::size_t bytes, std::size_t alignment) noexcept {
        return bytes != 0 and bytes <= block_bytes_max and alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    }

    [[nodiscard]] void* do_allocate(std::size_t bytes, std::size_t alignment) override;
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override;
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }

    std::array<block*, classes> kept_{};
    std::size_t kept_bytes_ = 0;
    std::size_t kept_bytes_max_;
    std::size_t in_use_ = 0;  // blocks
};

}  // namespace sluice
