// The functions that code compiled with -fsanitize=thread calls at each memory access, directed to
// our scheduler instead of TSan; and operator new, which gives processes of a scenario memory that
// is released with the schedule.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "tests/interleave/simulated_kernel.hpp"

using namespace sluice::interleave;

void* operator new(std::size_t bytes) {
    if (void* const memory = allocate_for_process(bytes)) return memory;
    if (void* const memory = std::malloc(bytes)) return memory;
    std::abort();
}
void operator delete(void* memory) noexcept {
    if (not is_memory_of_process(memory)) std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    operator delete(memory);
}

extern "C" {

void __tsan_init() {}
void __tsan_atomic_thread_fence(int) {}  // execution is sequential here
void __tsan_atomic_signal_fence(int) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void**) {}
void __tsan_vptr_update(void**, void*) {}

#define SLUICE_PLAIN(bytes)                             \
    void __tsan_read##bytes(void* at) {                 \
        record_access(at, bytes, false);                \
    }                                                   \
    void __tsan_write##bytes(void* at) {                \
        record_access(at, bytes, true);                 \
    }                                                   \
    void __tsan_read_write##bytes(void* at) {           \
        record_access(at, bytes, true);                 \
    }                                                   \
    void __tsan_unaligned_read##bytes(void* at) {       \
        record_access(at, bytes, false);                \
    }                                                   \
    void __tsan_unaligned_write##bytes(void* at) {      \
        record_access(at, bytes, true);                 \
    }                                                   \
    void __tsan_unaligned_read_write##bytes(void* at) { \
        record_access(at, bytes, true);                 \
    }
SLUICE_PLAIN(1)
SLUICE_PLAIN(2)
SLUICE_PLAIN(4)
SLUICE_PLAIN(8)
SLUICE_PLAIN(16)

// In pieces, so that a kill can come in between.
void* __tsan_memset(void* to, int value, std::size_t bytes) {
    constexpr std::size_t piece = 1024;
    for (std::size_t done = 0; done < bytes; done += piece) {
        const std::size_t size = std::min(piece, bytes - done);
        record_access(static_cast<char*>(to) + done, size, true);
        std::memset(static_cast<char*>(to) + done, value, size);
    }
    return to;
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
    record_access(to, bytes, true);
    record_copy(from);
    return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
    record_access(to, bytes, true);
    return std::memmove(to, from, bytes);
}

#define SLUICE_CHANGE(bits, name, fresh)                                               \
    std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* at, \
                                                     std::uint##bits##_t value, int) { \
        record_atomic_change(at, bits / 8);                                            \
        const std::uint##bits##_t before = *at;                                        \
        *at = static_cast<std::uint##bits##_t>(fresh);                                 \
        return before;                                                                 \
    }
#define SLUICE_ATOMIC(bits)                                                                               \
    std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at, int) {         \
        record_atomic_load(at, *at);                                                                      \
        return *at;                                                                                       \
    }                                                                                                     \
    void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value, int) {  \
        record_atomic_change(at, bits / 8);                                                               \
        *at = value;                                                                                      \
    }                                                                                                     \
    SLUICE_CHANGE(bits, exchange, value)                                                                  \
    SLUICE_CHANGE(bits, fetch_add, before + value)                                                        \
    SLUICE_CHANGE(bits, fetch_sub, before - value)                                                        \
    SLUICE_CHANGE(bits, fetch_or, before | value)                                                         \
    SLUICE_CHANGE(bits, fetch_and, before& value)                                                         \
    std::uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile std::uint##bits##_t* at,      \
                                                                   std::uint##bits##_t expected,          \
                                                                   std::uint##bits##_t fresh, int, int) { \
        record_atomic_change(at, bits / 8);                                                               \
        const std::uint##bits##_t before = *at;                                                           \
        if (before == expected) *at = fresh;                                                              \
        return before;                                                                                    \
    }                                                                                                     \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile std::uint##bits##_t* at,                   \
                                                      std::uint##bits##_t* expected,                      \
                                                      std::uint##bits##_t fresh, int a, int b) {          \
        const std::uint##bits##_t before =                                                                \
            __tsan_atomic##bits##_compare_exchange_val(at, *expected, fresh, a, b);                       \
        const bool is_done = before == *expected;                                                         \
        *expected = before;                                                                               \
        return is_done;                                                                                   \
    }                                                                                                     \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile std::uint##bits##_t* at,                     \
                                                    std::uint##bits##_t* expected,                        \
                                                    std::uint##bits##_t fresh, int a, int b) {            \
        return __tsan_atomic##bits##_compare_exchange_strong(at, expected, fresh, a, b);                  \
    }
SLUICE_ATOMIC(8)
SLUICE_ATOMIC(32)
SLUICE_ATOMIC(64)

}  // extern "C"
