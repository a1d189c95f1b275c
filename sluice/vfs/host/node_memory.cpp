#include "sluice/vfs/host/node_memory.hpp"

#include <array>
#include <cstddef>
#include <new>
#include <utility>

#include "sluice/base/recycled_memory.hpp"

namespace sluice::vfs {

namespace {

struct block {
    block* next;
};

constexpr std::size_t step_bytes = 32;
constexpr std::size_t block_bytes_max = 2048;
constexpr std::size_t classes = block_bytes_max / step_bytes + 1;
constexpr std::size_t kept_bytes_max = SLUICE_RECYCLES_MEMORY ? std::size_t{1} << 20 : 0;

// true after the cached blocks of this thread were destroyed
thread_local constinit bool has_ended = false;

// The free blocks of a thread, by size. A thread frees them when it ends. Blocks that it frees
// later return to the heap.
class kept_blocks {
public:
    kept_blocks() noexcept = default;
    kept_blocks(const kept_blocks&) = delete;
    kept_blocks& operator=(const kept_blocks&) = delete;
    ~kept_blocks() {
        has_ended = true;
        for (block*& first : first_)
            while (first != nullptr)
                ::operator delete(std::exchange(first, first->next));
    }

    [[nodiscard]] void* take(std::size_t size_class) noexcept {
        block* const one = first_[size_class];
        if (one == nullptr) return nullptr;
        first_[size_class] = one->next;
        bytes_ -= size_class * step_bytes;
        return one;
    }
    [[nodiscard]] bool keep(void* memory, std::size_t size_class) noexcept {
        if (size_class * step_bytes > kept_bytes_max - bytes_) return false;
        first_[size_class] = new (memory) block{.next = first_[size_class]};
        bytes_ += size_class * step_bytes;
        return true;
    }

private:
    std::array<block*, classes> first_{};
    std::size_t bytes_ = 0;
};

class thread_memory final : public std::pmr::memory_resource {
    [[nodiscard]] static constexpr std::size_t class_of(std::size_t bytes) noexcept {
        return (bytes + step_bytes - 1) / step_bytes;
    }
    [[nodiscard]] static constexpr bool is_kept(std::size_t bytes, std::size_t alignment) noexcept {
        return bytes != 0 and bytes <= block_bytes_max and alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    }
    [[nodiscard]] static kept_blocks& kept() noexcept {
        static thread_local kept_blocks of_this_thread;
        return of_this_thread;
    }

    [[nodiscard]] void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        if (not is_kept(bytes, alignment)) return ::operator new(bytes, std::align_val_t(alignment));
        if (not has_ended)
            if (void* const reused = kept().take(class_of(bytes))) return reused;
        return ::operator new(class_of(bytes) * step_bytes);
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
        if (not is_kept(bytes, alignment))
            ::operator delete(memory, std::align_val_t(alignment));
        else if (has_ended or not kept().keep(memory, class_of(bytes)))
            ::operator delete(memory);
    }
    [[nodiscard]] bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other;
    }
};

}  // namespace

std::pmr::memory_resource& node_memory() noexcept {
    // Never destroyed, because a worker may still destroy a node when the process ends.
    alignas(thread_memory) static constinit std::array<std::byte, sizeof(thread_memory)> storage{};
    static thread_memory& of_all = *new (storage.data()) thread_memory;
    return of_all;
}

}  // namespace sluice::vfs
