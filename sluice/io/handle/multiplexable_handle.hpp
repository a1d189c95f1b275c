#pragma once

#include "sluice/io/call/handle.hpp"

namespace sluice::io {

class io_multiplexer;
struct registration;
namespace detail {
struct handle_access;
}

/// A handle that asynchronous operations may refer to: the parent of io_handle, whose operations
/// transfer bytes, of listening_socket_handle, and of user-defined handles (see
/// user_operation.hpp).
class multiplexable_handle : public handle {
public:
    constexpr multiplexable_handle() noexcept = default;
    explicit constexpr multiplexable_handle(native_handle native) noexcept : handle(native) {}
    multiplexable_handle(multiplexable_handle&& other) noexcept
        : handle(std::move(other)), registration_(std::exchange(other.registration_, nullptr)) {}
    multiplexable_handle& operator=(multiplexable_handle&& other) noexcept;
    ~multiplexable_handle();

    /// Returns the multiplexer for asynchronous operations on this handle; null if none is set.
    [[nodiscard]] io_multiplexer* multiplexer() const noexcept;

    /// Attaches this handle to a multiplexer (by default the calling thread's own) or, given null,
    /// detaches it. A handle without one adopts the one that runs on the calling thread, or else
    /// the thread's own, when its first asynchronous operation is created (P2052R0 4.3.3). If that
    /// fails, the operation ends with the error. A handle must be detached or closed before the
    /// thread that owns its multiplexer ends. Errors: EBUSY while I/O is pending on the handle;
    /// EPERM, ENOMEM, ENOSPC from the kernel. Allocates: amortised, in the multiplexer's table of
    /// handles. Blocks: no.
    [[nodiscard]] result<void> set_multiplexer(io_multiplexer* multiplexer) noexcept;
    [[nodiscard]] result<void> set_multiplexer() noexcept;

    /// As handle::close. It is a programming error to close, or destroy, a handle with I/O pending.
    /// Detaching first takes one system call, or a few, that do not wait. Blocks: as close(2).
    [[nodiscard]] result<void> close() noexcept;
    [[nodiscard]] native_handle release() noexcept;

private:
    friend struct detail::handle_access;

    /// Records that O_NONBLOCK has been set on the description, so that it is not queried again.
    void record_nonblocking() noexcept;
    /// Returns the multiplexer's record of this handle; null without a multiplexer.
    [[nodiscard]] registration* registered() const noexcept { return registration_; }
    /// The same, after adopting the calling thread's multiplexer if there is none. If that fails,
    /// returns a record on which every operation ends with the error.
    [[nodiscard]] registration& adopted() noexcept {
        if (registration_ != nullptr) [[likely]]
            return *registration_;
        return adopt();
    }
    [[nodiscard]] registration& adopt() noexcept;
    void detach_permanently() noexcept;

    registration* registration_ = nullptr;
};

namespace detail {

/// The library's own access to a handle, for senders and not for users.
struct handle_access {
    /// Returns the multiplexer's record of a handle; null without a multiplexer.
    [[nodiscard]] static registration* registered(const multiplexable_handle& of) noexcept {
        return of.registered();
    }
    /// The same, after adopting the calling thread's multiplexer if there is none.
    [[nodiscard, gnu::always_inline]] static registration& adopted(multiplexable_handle& of) noexcept {
        return of.adopted();
    }
    static void record_nonblocking(multiplexable_handle& of) noexcept { of.record_nonblocking(); }
};

}  // namespace detail
}  // namespace sluice::io
