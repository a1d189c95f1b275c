// The functions that code compiled with -fsanitize=thread calls at each memory access. This file is
// compiled without. It uses no template of the standard library: the linker might choose its copy
// of a function that the code under test uses, which would not be recorded.

#include "tests/shared_lines/access_trace.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

namespace sluice::shared_lines {
namespace {

constinit thread_local int core_of_thread = access_trace::no_core;
constinit bool is_recording = false;
constinit access* all = nullptr;
constinit std::size_t next = 0;

[[gnu::always_inline]] inline void note(const volatile void* at, std::size_t bytes, access_kind kind,
                                        void* code) noexcept {
    if (core_of_thread < 0 or not __atomic_load_n(&is_recording, __ATOMIC_ACQUIRE)) return;
    const std::size_t place = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
    if (place >= access_trace::accesses_max) return;
    all[place] = {.address = reinterpret_cast<std::uintptr_t>(at),
                  .code = reinterpret_cast<std::uintptr_t>(code),
                  .bytes = static_cast<std::uint32_t>(bytes),
                  .kind = kind,
                  .core = static_cast<std::uint8_t>(core_of_thread)};
}

}  // namespace

int access_trace::become_core(int number) noexcept {
    const int before = core_of_thread;
    core_of_thread = number;
    return before;
}

void access_trace::begin() noexcept {
    if (all == nullptr) {
        void* const memory = ::mmap(nullptr, accesses_max * sizeof(access), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) std::abort();
        all = static_cast<access*>(memory);
    }
    next = 0;
    __atomic_store_n(&is_recording, true, __ATOMIC_RELEASE);
}

void access_trace::end() noexcept {
    __atomic_store_n(&is_recording, false, __ATOMIC_RELEASE);
}

const access* access_trace::recorded() noexcept {
    return all;
}

std::size_t access_trace::count() noexcept {
    const std::size_t count = __atomic_load_n(&next, __ATOMIC_RELAXED);
    return count < accesses_max ? count : accesses_max;
}

bool access_trace::is_cut() noexcept {
    return __atomic_load_n(&next, __ATOMIC_RELAXED) > accesses_max;
}

}  // namespace sluice::shared_lines

using sluice::shared_lines::access_kind;
using sluice::shared_lines::note;

#define SLUICE_HERE __builtin_return_address(0)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_atomic_thread_fence(int) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}
void __tsan_vptr_read(void** at) {
    note(at, sizeof *at, access_kind::read, SLUICE_HERE);
}
void __tsan_vptr_update(void** at, void*) {
    note(at, sizeof *at, access_kind::write, SLUICE_HERE);
}

#define SLUICE_PLAIN(bytes)                               \
    void __tsan_read##bytes(void* at) {                   \
        note(at, bytes, access_kind::read, SLUICE_HERE);  \
    }                                                     \
    void __tsan_write##bytes(void* at) {                  \
        note(at, bytes, access_kind::write, SLUICE_HERE); \
    }                                                     \
    void __tsan_read_write##bytes(void* at) {             \
        note(at, bytes, access_kind::write, SLUICE_HERE); \
    }                                                     \
    void __tsan_unaligned_read##bytes(void* at) {         \
        note(at, bytes, access_kind::read, SLUICE_HERE);  \
    }                                                     \
    void __tsan_unaligned_write##bytes(void* at) {        \
        note(at, bytes, access_kind::write, SLUICE_HERE); \
    }                                                     \
    void __tsan_unaligned_read_write##bytes(void* at) {   \
        note(at, bytes, access_kind::write, SLUICE_HERE); \
    }
SLUICE_PLAIN(1)
SLUICE_PLAIN(2)
SLUICE_PLAIN(4)
SLUICE_PLAIN(8)
SLUICE_PLAIN(16)

void* __tsan_memset(void* to, int value, std::size_t bytes) {
    note(to, bytes, access_kind::write, SLUICE_HERE);
    return std::memset(to, value, bytes);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
    note(from, bytes, access_kind::read, SLUICE_HERE);
    note(to, bytes, access_kind::write, SLUICE_HERE);
    return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
    note(from, bytes, access_kind::read, SLUICE_HERE);
    note(to, bytes, access_kind::write, SLUICE_HERE);
    return std::memmove(to, from, bytes);
}

// The order of an atomic access is always the strongest.
#define SLUICE_CHANGE(bits, name, operation, kind)                                     \
    std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* at, \
                                                     std::uint##bits##_t value, int) { \
        note(at, bits / 8, access_kind::kind, SLUICE_HERE);                            \
        return __atomic_##operation(at, value, __ATOMIC_SEQ_CST);                      \
    }
#define SLUICE_ATOMIC(bits)                                                                                 \
    std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* at, int) {           \
        note(at, bits / 8, access_kind::read, SLUICE_HERE);                                                 \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                       \
    }                                                                                                       \
    void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* at, std::uint##bits##_t value, int) {    \
        note(at, bits / 8, access_kind::write, SLUICE_HERE);                                                \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                      \
    }                                                                                                       \
    SLUICE_CHANGE(bits, exchange, exchange_n, release)                                                      \
    SLUICE_CHANGE(bits, fetch_add, fetch_add, change)                                                       \
    SLUICE_CHANGE(bits, fetch_sub, fetch_sub, change)                                                       \
    SLUICE_CHANGE(bits, fetch_or, fetch_or, change)                                                         \
    SLUICE_CHANGE(bits, fetch_and, fetch_and, change)                                                       \
    SLUICE_CHANGE(bits, fetch_xor, fetch_xor, change)                                                       \
    SLUICE_CHANGE(bits, fetch_nand, fetch_nand, change)                                                     \
    std::uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile std::uint##bits##_t* at,        \
                                                                   std::uint##bits##_t expected,            \
                                                                   std::uint##bits##_t fresh, int, int) {   \
        note(at, bits / 8, access_kind::acquire, SLUICE_HERE);                                              \
        __atomic_compare_exchange_n(at, &expected, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
        return expected;                                                                                    \
    }                                                                                                       \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile std::uint##bits##_t* at,                     \
                                                      std::uint##bits##_t* expected,                        \
                                                      std::uint##bits##_t fresh, int, int) {                \
        note(at, bits / 8, access_kind::acquire, SLUICE_HERE);                                              \
        return __atomic_compare_exchange_n(at, expected, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }                                                                                                       \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile std::uint##bits##_t* at,                       \
                                                    std::uint##bits##_t* expected,                          \
                                                    std::uint##bits##_t fresh, int, int) {                  \
        note(at, bits / 8, access_kind::acquire, SLUICE_HERE);                                              \
        return __atomic_compare_exchange_n(at, expected, fresh, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }
SLUICE_ATOMIC(8)
SLUICE_ATOMIC(16)
SLUICE_ATOMIC(32)
SLUICE_ATOMIC(64)

// std::mutex, by --wrap of the linker.
int __real_pthread_mutex_lock(pthread_mutex_t* which);
int __real_pthread_mutex_unlock(pthread_mutex_t* which);
int __wrap_pthread_mutex_lock(pthread_mutex_t* which) {
    note(which, 4, access_kind::acquire, SLUICE_HERE);
    return __real_pthread_mutex_lock(which);
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* which) {
    note(which, 4, access_kind::release, SLUICE_HERE);
    return __real_pthread_mutex_unlock(which);
}

}  // extern "C"
