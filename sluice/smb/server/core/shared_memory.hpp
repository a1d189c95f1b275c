#pragma once

#include <cstddef>
#include <memory_resource>

#include "sluice/base/recycled_memory.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"

namespace sluice::smb::server {

/// Recycled memory (recycled_memory.hpp) of objects that any thread may release.
/// Monitor: any thread, whatever other mutex it holds; `mutex_` guards the memory. Allocates: when
/// none of the size is kept. Complexity: O(1). Lifetime: outlives what is made in it (ENSURE).
class shared_memory final : public std::pmr::memory_resource {
public:
    explicit shared_memory(std::size_t kept_bytes_max = std::size_t{4} << 20) noexcept
        : memory_(kept_bytes_max) {}
    shared_memory(const shared_memory&) = delete;
    shared_memory& operator=(const shared_memory&) = delete;
    ~shared_memory() override = default;

private:
    [[nodiscard]] void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        const lock_guard held(mutex_);
        return memory_.allocate(bytes, alignment);
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        const lock_guard held(mutex_);
        memory_.deallocate(memory, bytes, alignment);
    }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }

    ranked_mutex<lock_rank::memory> mutex_;
    recycled_memory memory_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
