#pragma once

#include <poll.h>
#include <sys/epoll.h>

#include <asio/posix/descriptor_base.hpp>
#include <asio/socket_base.hpp>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "sluice/io/asio/asio_operation.hpp"
#include "sluice/io/asio/core.hpp"
#include "sluice/io/call/blocking.hpp"
#include "sluice/io/handle/multiplexable_handle.hpp"

// The waits of Asio's sockets and descriptors; for the adapter's headers, not for users.
namespace sluice::io::detail {

/// The common meaning of Asio's two enumerations called wait_type.
enum class asio_condition : std::uint8_t { readable, writable, exceptional };

template <class Base>
[[nodiscard]] constexpr asio_condition asio_condition_of(typename Base::wait_type what) noexcept {
    if (what == Base::wait_read) return asio_condition::readable;
    return what == Base::wait_write ? asio_condition::writable : asio_condition::exceptional;
}

/// Returns whether a descriptor has out-of-band data, an error or a hang-up: what
/// wait_error waits for.
/// Blocks: unless `milliseconds` is 0; -1 means without a limit.
[[nodiscard]] inline bool asio_is_exceptional(int descriptor, int milliseconds) noexcept {
    pollfd watched{.fd = descriptor, .events = POLLPRI, .revents = 0};
    int ready = 0;
    do {
        ready = ::poll(&watched, 1, milliseconds);
    } while (ready < 0 and errno == EINTR);
    return ready > 0;
}

/// A handle that is readable while a descriptor has out-of-band data, an error or a hang-up.
/// Multiplexers wait for two directions only; a separate epoll instance turns the third condition
/// into one of them.
class asio_exception_watch : public multiplexable_handle {
public:
    /// Errors: EPERM for a regular file; EMFILE, ENFILE, ENOMEM, ENOSPC. Takes one descriptor.
    [[nodiscard]] static result<asio_exception_watch> create(int descriptor, io_multiplexer& on) noexcept {
        const int poller = ::epoll_create1(EPOLL_CLOEXEC);
        if (poller < 0) return failure(error::last("epoll_create1"));
        asio_exception_watch made(native_handle{
            .descriptor = poller, .kind = handle_kind::pipe, .readable = true, .nonblocking = true});
        epoll_event wanted{.events = EPOLLPRI, .data = {.ptr = nullptr}};
        if (::epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &wanted) != 0)
            return failure(error::last("epoll_ctl", descriptor));
        if (auto set = made.set_multiplexer(&on); not set) return failure(set.error());
        return made;
    }

private:
    using multiplexable_handle::multiplexable_handle;
};

/// Waits until a handle is ready.
template <class Handle>
class asio_ready : public asio_handle_work<Handle> {
    using base = asio_handle_work<Handle>;

public:
    asio_ready(asio_core<Handle>& core, asio_condition what) noexcept : base(core), what_(what) {}
    [[nodiscard]] auto sender() noexcept {
        if (watch_.has_value()) return async_ready(*watch_, direction::in);
        return async_ready(this->handle(),
                           what_ == asio_condition::writable ? direction::out : direction::in);
    }
    [[nodiscard]] bool is_nothing() noexcept {
        if (base::is_nothing()) return true;
        if (what_ != asio_condition::exceptional or watch_.has_value()) return false;
        auto made = asio_exception_watch::create(this->handle().descriptor(), this->multiplexer());
        if (not made) return this->refuse(asio_error(made.error()));
        watch_.emplace(std::move(*made));
        return false;
    }
    [[nodiscard]] auto nothing() const noexcept { return std::tuple(this->refused()); }
    [[nodiscard]] static auto finish(result<void>&& outcome) noexcept {
        return std::tuple(asio_outcome(outcome));
    }

private:
    asio_condition what_;
    std::optional<asio_exception_watch> watch_;
};

/// Blocks: until the descriptor is ready, unless `may_wait` is false; then would_block.
[[nodiscard]] inline asio::error_code asio_wait_now(const native_handle& native, asio_condition what,
                                                    bool may_wait) noexcept {
    if (not native.is_valid()) return {EBADF, asio::error::get_system_category()};
    if (what == asio_condition::exceptional) {
        if (asio_is_exceptional(native.descriptor, may_wait ? -1 : 0)) return {};
        return asio::error::would_block;
    }
    const direction which = what == asio_condition::writable ? direction::out : direction::in;
    const auto outcome = wait_ready(native, which, may_wait ? deadline() : deadline::zero());
    if (not may_wait and not outcome.has_value() and outcome.error().code() == ETIMEDOUT)
        return asio::error::would_block;
    return asio_outcome(outcome);
}

}  // namespace sluice::io::detail
