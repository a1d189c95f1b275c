#pragma once

#include <cerrno>
#include <cstddef>

#include "sluice/io/handle.hpp"
#include "sluice/io/operation.hpp"
#include "sluice/io/transfer_call.hpp"

// Internal to io: the system calls of a ready handle, made in place.
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

/// Makes one transfer of one piece, as transfer_call does.
/// Returns the bytes moved, or a negative errno value. `errno` is left alone.
std::ptrdiff_t transfer_piece_through_library(const native_handle& native, direction which,
                                              const buffer& piece, extent_type offset, wait waits) noexcept;

#ifdef SLUICE_CALLS_IN_PLACE

namespace detail {

inline std::ptrdiff_t call_kernel(long number, long a, const void* b, std::size_t c) noexcept {
    std::ptrdiff_t returned = 0;
    asm volatile("syscall" : "=a"(returned) : "0"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return returned;
}

inline std::ptrdiff_t call_kernel(long number, long a, const void* b, std::size_t c, long d,
                                  long f = 0) noexcept {
    std::ptrdiff_t returned = 0;
    register long r10 asm("r10") = d;
    register long r8 asm("r8") = 0;
    register long r9 asm("r9") = f;
    asm volatile("syscall"
                 : "=a"(returned)
                 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return returned;
}

}  // namespace detail

inline std::ptrdiff_t transfer_piece(const native_handle& native, direction which, const buffer& piece,
                                     extent_type offset, wait waits) noexcept {
    // The numbers and flags of x86-64 Linux, which are for ever.
    struct numbers {
        long in, out;
    };
    constexpr numbers plain{.in = 0, .out = 1};         // read, write
    constexpr numbers socket{.in = 45, .out = 44};      // recvfrom, sendto
    constexpr numbers positioned{.in = 17, .out = 18};  // pread64, pwrite64
    constexpr numbers listed{.in = 327, .out = 328};    // preadv2, pwritev2
    constexpr long message_nosignal = 0x4000;
    constexpr long message_dontwait = 0x40;
    constexpr long rwf_nowait = 8;
    const auto number = [which](numbers of) { return which == direction::in ? of.in : of.out; };
    const int fd = native.descriptor;
    if (native.kind == handle_kind::socket) {
        return detail::call_kernel(
            number(socket), fd, piece.data(), piece.size(),
            waits == wait::yes ? message_nosignal : message_nosignal | message_dontwait);
    }
    if (native.kind == handle_kind::file) {
        const auto at = static_cast<long>(offset);
        if (native.in_memory or waits == wait::yes) {
            return detail::call_kernel(number(positioned), fd, piece.data(), piece.size(), at);
        }
        return detail::call_kernel(number(listed), fd, &piece, 1, at,
                                   rwf_nowait);  // a list of one, by its layout
    }
    if (not native.nonblocking and waits == wait::no) [[unlikely]]
        return transfer_piece_through_library(native, which, piece, offset, waits);
    return detail::call_kernel(number(plain), fd, piece.data(), piece.size());
}

#else

inline std::ptrdiff_t transfer_piece(const native_handle& native, direction which, const buffer& piece,
                                     extent_type offset, wait waits) noexcept {
    return transfer_piece_through_library(native, which, piece, offset, waits);
}

#endif

}  // namespace sluice::io
