#include "bench/harness/allocation_counter.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace sluice::bench {
namespace {

// Constant-initialised, because the first malloc comes before any constructor. Relaxed: a count
// orders nothing. One counter for all threads costs a benchmark that allocates from several of them
// some cache misses, which is little compared with the allocations that it should find.
constinit std::atomic<std::uint64_t> count{0};

void record_one() noexcept {
    count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

std::uint64_t allocations() noexcept {
    return count.load(std::memory_order_relaxed);
}

}  // namespace sluice::bench

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLUICE_SANITIZER_OWNS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SLUICE_SANITIZER_OWNS_MALLOC 1
#endif
#endif

#ifdef SLUICE_SANITIZER_OWNS_MALLOC

// A sanitizer has already replaced malloc; it notifies these hooks.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, std::size_t),
                                                         void (*)(const volatile void*));

namespace {
[[gnu::constructor]] void install_hooks() {
    __sanitizer_install_malloc_and_free_hooks(
        [](const volatile void*, std::size_t) { sluice::bench::record_one(); }, [](const volatile void*) {});
}
}  // namespace

#else

// Symbols of the program take precedence over those of the C library, whose own allocator remains
// reachable under these.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t number, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
    sluice::bench::record_one();
    return __libc_malloc(bytes);
}

void* calloc(std::size_t number, std::size_t bytes) noexcept {
    sluice::bench::record_one();
    return __libc_calloc(number, bytes);
}

void* realloc(void* block, std::size_t bytes) noexcept {
    sluice::bench::record_one();
    return __libc_realloc(block, bytes);
}

void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
    sluice::bench::record_one();
    return __libc_memalign(alignment, bytes);
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    return memalign(alignment, bytes);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
    if (alignment % sizeof(void*) != 0 or (alignment & (alignment - 1)) != 0 or alignment == 0) return EINVAL;
    void* const fresh = memalign(alignment, bytes);
    if (fresh == nullptr) return ENOMEM;
    *block = fresh;
    return 0;
}
}

#endif
