#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "sluice/io/call/handle.hpp"
#include "sluice/io/call/piece_call.hpp"
#include "sluice/io/call/transfer_call.hpp"

// Internal to io: the system calls of a ready handle, made in place.
//
// A call through the C library returns twice. On processors that flush their branch predictors when
// they enter the kernel (every mitigated one), each return, each indirect call and each taken
// branch after a system call is mispredicted, which is most of the overhead of an asynchronous
// layer over the bare call. So the call is chosen beforehand (piece_call), and
// making it takes no branch. Sanitizers must see the buffers, so their builds, and other
// architectures, go through the C library.
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

#ifdef SLUICE_CALLS_IN_PLACE

/// Returns the system call that transfer_call would make for `native`; none if that takes more than
/// one call to find out.
[[nodiscard]] constexpr piece_call choose_call(const native_handle& native, direction which,
                                               wait waits) noexcept {
    // The numbers and flags of x86-64 Linux, which never change.
    constexpr std::uint16_t message_nosignal = 0x4000;
    constexpr std::uint16_t message_dontwait = 0x40;
    constexpr std::uint8_t rwf_nowait = 8;
    const bool in = which == direction::in;
    const auto number = [in](int of_in, int of_out) {
        return static_cast<std::int16_t>(in ? of_in : of_out);
    };
    constexpr int recvfrom = 45, sendto = 44, preadv2 = 327, pwritev2 = 328;
    if (native.kind == handle_kind::file) {
        const bool takes_offset = in or not native.append_only;  // else 0, which the kernel ignores
        if (waits == wait::yes or native.in_memory)
            return {.number = number(17, 18), .takes_offset = takes_offset};
        return {.number = number(preadv2, pwritev2),
                .takes_list = true,
                .takes_offset = takes_offset,
                .sixth = rwf_nowait};
    }
    if (native.kind == handle_kind::socket) {
        const auto flags = waits == wait::yes ? message_nosignal : message_nosignal | message_dontwait;
        return {.number = number(recvfrom, sendto),
                .any_will_do = in,
                .fourth = static_cast<std::uint16_t>(flags)};
    }
    if (waits == wait::no and not native.nonblocking) return {};
    return {.number = number(0, 1), .any_will_do = in};  // read, write
}

/// Makes the call. Returns the bytes moved, or a negative errno value. `errno` does not change.
[[gnu::always_inline]] inline std::ptrdiff_t make_call(const piece_call& what, int descriptor,
                                                       const buffer& piece, extent_type offset) noexcept {
    // A list of one, by its layout.
    const void* const memory = what.takes_list ? static_cast<const void*>(&piece) : piece.data();
    const std::size_t count = what.takes_list ? 1 : piece.size();
    std::ptrdiff_t returned = what.number;
    // The kernel ignores arguments that a call does not take.
    register std::uint64_t r10 asm("r10") = what.takes_offset ? offset : what.fourth;
    register std::uint64_t r8 asm("r8") = 0;
    register std::uint64_t r9 asm("r9") = what.sixth;
    asm volatile("syscall"
                 : "+a"(returned)
                 : "D"(static_cast<long>(descriptor)), "S"(memory), "d"(count), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return returned;
}

#else

[[nodiscard]] constexpr piece_call choose_call(const native_handle&, direction, wait) noexcept {
    return {};
}
inline std::ptrdiff_t make_call(const piece_call&, int, const buffer&, extent_type) noexcept {
    return -ENOSYS;
}

#endif

/// Makes one transfer of one segment, as transfer_call does. Returns the bytes moved, or a negative
/// errno value. `errno` does not change.
inline std::ptrdiff_t transfer_piece(const native_handle& native, direction which, const buffer& piece,
                                     extent_type offset, wait waits) noexcept {
    const piece_call call = choose_call(native, which, waits);
    if (not call.is_known()) [[unlikely]]
        return transfer_piece_through_library(native, which, piece, offset, waits);
    return make_call(call, native.descriptor, piece, offset);
}

}  // namespace sluice::io
