#pragma once

#include <cerrno>
#include <cstddef>

#include "sluice/io/handle.hpp"
#include "sluice/io/operation.hpp"

// Internal to io: the four system calls of a ready stream, made in place.
//
// A call through the C library returns twice. On processors that flush their branch predictors when entering
// the kernel (every mitigated one) each return and each indirect call behind a system call is mispredicted,
// some 6 ns apiece, and that is most of what an asynchronous layer costs over the bare call. Sanitizers must
// see the buffers, so their builds, and other architectures, go through the C library.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer) && !__has_feature(memory_sanitizer)
#define SLUICE_CALLS_IN_PLACE 1
#endif
#else
#define SLUICE_CALLS_IN_PLACE 1
#endif
#endif

namespace sluice::io {

/// Makes one non-blocking transfer of one piece on a stream, as transfer_call does with `wait::no`.
/// Returns the bytes moved, or a negative errno value. `errno` is left alone.
std::ptrdiff_t transfer_piece_through_library(const native_handle& native, direction which,
                                              const buffer& piece) noexcept;

#ifdef SLUICE_CALLS_IN_PLACE

namespace detail {

inline std::ptrdiff_t call_kernel(long number, long a, const void* b, std::size_t c) noexcept {
    std::ptrdiff_t returned = 0;
    asm volatile("syscall" : "=a"(returned) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return returned;
}

inline std::ptrdiff_t call_kernel(long number, long a, const void* b, std::size_t c, long d) noexcept {
    std::ptrdiff_t returned = 0;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = 0;
    register long r9 asm("r9") = 0;
    asm volatile("syscall"
                 : "=a"(returned)
                 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return returned;
}

}  // namespace detail

inline std::ptrdiff_t transfer_piece(const native_handle& native, direction which,
                                     const buffer& piece) noexcept {
    // The numbers and flags of x86-64 Linux, which are for ever: read 0, write 1, sendto 44, recvfrom 45.
    constexpr long message_dontwait_nosignal = 0x40 | 0x4000;
    const bool in = which == direction::in;
    if (native.kind == handle_kind::socket) {
        return detail::call_kernel(in ? 45 : 44, native.descriptor, piece.data(), piece.size(),
                                   message_dontwait_nosignal);
    }
    if (not native.nonblocking) [[unlikely]]
        return transfer_piece_through_library(native, which, piece);
    return detail::call_kernel(in ? 0 : 1, native.descriptor, piece.data(), piece.size());
}

#else

inline std::ptrdiff_t transfer_piece(const native_handle& native, direction which,
                                     const buffer& piece) noexcept {
    return transfer_piece_through_library(native, which, piece);
}

#endif

}  // namespace sluice::io
