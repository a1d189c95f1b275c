#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/async_result.hpp>
#include <asio/error.hpp>
#include <asio/execution_context.hpp>
#include <asio/socket_base.hpp>
#include <cerrno>
#include <concepts>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/io/asio/core.hpp"
#include "sluice/io/asio_operation.hpp"
#include "sluice/io/listening_socket_handle.hpp"
#include "sluice/io/socket_address.hpp"
#include "sluice/io/socket_call.hpp"
#include "sluice/io/socket_handle.hpp"

namespace sluice::io {

namespace detail {

[[nodiscard]] inline asio::error_code asio_errno(int code) noexcept {
    return {code, asio::error::get_system_category()};
}
/// Converts errno if `returned` is negative.
[[nodiscard]] inline asio::error_code asio_called(int returned) noexcept {
    return returned < 0 ? asio_errno(errno) : asio::error_code();
}

/// An Asio endpoint as an address, and back.
template <class Endpoint>
[[nodiscard]] socket_address address_of(const Endpoint& from) noexcept {
    socket_address made;
    std::memcpy(made.data(), from.data(), from.size());
    made.resize(static_cast<std::uint32_t>(from.size()));
    return made;
}
template <class Endpoint>
[[nodiscard]] Endpoint endpoint_of(const socket_address& from) {
    Endpoint made;
    const std::size_t bytes = std::min<std::size_t>(from.size(), made.capacity());
    std::memcpy(made.data(), from.data(), bytes);
    made.resize(bytes);
    return made;
}

/// The error of a wait that is not offered: for out-of-band data.
[[nodiscard]] inline asio::error_code asio_unsupported(asio::socket_base::wait_type what) noexcept {
    return what == asio::socket_base::wait_error ? asio::error_code(asio::error::operation_not_supported)
                                                 : asio::error_code();
}

template <class Handle>
class asio_ready : public asio_handle_work<Handle> {
public:
    asio_ready(asio_core<Handle>& core, asio::socket_base::wait_type what) noexcept
        : asio_handle_work<Handle>(core, asio_unsupported(what)),
          which_(what == asio::socket_base::wait_write ? direction::out : direction::in) {}
    [[nodiscard]] auto sender() noexcept { return async_ready(this->handle(), which_); }
    [[nodiscard]] auto nothing() const noexcept { return std::tuple(this->refused()); }
    [[nodiscard]] static auto finish(result<void>&& outcome) noexcept {
        return std::tuple(asio_outcome(outcome));
    }

private:
    direction which_;
};

}  // namespace detail

namespace asio_names {

template <class Context>
concept asio_execution_context = std::convertible_to<Context&, asio::execution_context&>;

/// The common part of sockets and acceptors: the members of Asio's basic_socket, with their meaning.
///
/// Each member that may fail has a form that throws asio::system_error and one that sets an error_code.
/// Differences from Asio: close() while operations are pending closes the descriptor when the last of them
/// has ended; the descriptor stays in blocking mode unless native_non_blocking says otherwise.
/// Thread safety: as Asio's: one thread at a time, which may be another one than runs the context.
template <class Protocol, class Executor, class Handle>
class socket_object : public asio::socket_base {
public:
    using executor_type = Executor;
    using protocol_type = Protocol;
    using endpoint_type = typename Protocol::endpoint;
    using native_handle_type = int;
    using lowest_layer_type = socket_object;

    [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }
    [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
    [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return *this; }
    [[nodiscard]] bool is_open() const noexcept { return core_ != nullptr and core_->handle.is_valid(); }
    [[nodiscard]] native_handle_type native_handle() const noexcept {
        return core_ != nullptr ? core_->handle.descriptor() : -1;
    }

    template <class Any>
    void open(const Any& protocol, asio::error_code& why) {
        if (is_open()) {
            why = asio::error::already_open;
            return;
        }
        const int made = ::socket(protocol.family(), protocol.type() | SOCK_CLOEXEC, protocol.protocol());
        why = detail::asio_called(made);
        if (not why) take(made, protocol.type());
    }
    template <class Any = protocol_type>
    void open(const Any& protocol = Any()) {
        asio::error_code why;
        open(protocol, why);
        detail::asio_throw_if(why, "open");
    }
    /// Takes over a descriptor.
    template <class Any>
    void assign(const Any& protocol, native_handle_type native, asio::error_code& why) {
        if (is_open()) {
            why = asio::error::already_open;
            return;
        }
        why.clear();
        take(native, protocol.type());
    }
    template <class Any>
    void assign(const Any& protocol, native_handle_type native) {
        asio::error_code why;
        assign(protocol, native, why);
        detail::asio_throw_if(why, "assign");
    }

    /// Takes over a handle of sluice::io, in place of what it had.
    void adopt(Handle&& handle) {
        let_go();
        core_ = detail::make_asio_core<core>(*context_, std::move(handle));
    }

    void bind(const endpoint_type& local, asio::error_code& why) {
        why = detail::asio_called(::bind(native_handle(), as_sockaddr(local), length_of(local)));
    }
    void bind(const endpoint_type& local) {
        asio::error_code why;
        bind(local, why);
        detail::asio_throw_if(why, "bind");
    }

    void cancel(asio::error_code& why) noexcept {
        why = is_open() ? asio::error_code() : detail::asio_errno(EBADF);
        if (not why) core_->cancel_all(core_);
    }
    void cancel() {
        asio::error_code why;
        cancel(why);
        detail::asio_throw_if(why, "cancel");
    }
    void close(asio::error_code& why) {
        why.clear();
        let_go();
    }
    void close() {
        asio::error_code why;
        close(why);
    }
    /// Returns the descriptor, which the caller owns. Fails with EBUSY while operations are pending.
    [[nodiscard]] native_handle_type release(asio::error_code& why) {
        why = is_open() ? asio::error_code() : detail::asio_errno(EBADF);
        if (not why and core_->handle.multiplexer() != nullptr)
            why = detail::asio_outcome(core_->handle.set_multiplexer(nullptr));
        return why ? -1 : core_->handle.release().descriptor;
    }
    [[nodiscard]] native_handle_type release() {
        asio::error_code why;
        const native_handle_type released = release(why);
        detail::asio_throw_if(why, "release");
        return released;
    }

    template <class Option>
    void set_option(const Option& option, asio::error_code& why) {
        const auto protocol = protocol_in_use();
        why = detail::asio_called(::setsockopt(native_handle(), option.level(protocol), option.name(protocol),
                                               option.data(protocol),
                                               static_cast<socklen_t>(option.size(protocol))));
    }
    template <class Option>
    void set_option(const Option& option) {
        asio::error_code why;
        set_option(option, why);
        detail::asio_throw_if(why, "set_option");
    }
    template <class Option>
    void get_option(Option& option, asio::error_code& why) const {
        const auto protocol = protocol_in_use();
        auto length = static_cast<socklen_t>(option.size(protocol));
        why = detail::asio_called(::getsockopt(native_handle(), option.level(protocol), option.name(protocol),
                                               option.data(protocol), &length));
        if (not why) option.resize(protocol, length);
    }
    template <class Option>
    void get_option(Option& option) const {
        asio::error_code why;
        get_option(option, why);
        detail::asio_throw_if(why, "get_option");
    }
    template <class Command>
    void io_control(Command& command, asio::error_code& why) {
        why = detail::asio_called(
            ::ioctl(native_handle(), static_cast<unsigned long>(command.name()), command.data()));
    }
    template <class Command>
    void io_control(Command& command) {
        asio::error_code why;
        io_control(command, why);
        detail::asio_throw_if(why, "io_control");
    }

    /// Whether the operations that block fail with would_block instead.
    [[nodiscard]] bool non_blocking() const noexcept { return is_non_blocking_; }
    void non_blocking(bool mode, asio::error_code& why) noexcept {
        why = is_open() ? asio::error_code() : detail::asio_errno(EBADF);
        if (not why) is_non_blocking_ = mode;
    }
    void non_blocking(bool mode) {
        asio::error_code why;
        non_blocking(mode, why);
        detail::asio_throw_if(why, "non_blocking");
    }
    [[nodiscard]] bool native_non_blocking() const noexcept {
        return (::fcntl(native_handle(), F_GETFL) & O_NONBLOCK) != 0;
    }
    void native_non_blocking(bool mode, asio::error_code& why) noexcept {
        const int flags = ::fcntl(native_handle(), F_GETFL);
        why = detail::asio_called(flags);
        if (why) return;
        why = detail::asio_called(
            ::fcntl(native_handle(), F_SETFL, mode ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
    }
    void native_non_blocking(bool mode) {
        asio::error_code why;
        native_non_blocking(mode, why);
        detail::asio_throw_if(why, "native_non_blocking");
    }

    [[nodiscard]] endpoint_type local_endpoint(asio::error_code& why) const {
        why = is_open() ? asio::error_code() : detail::asio_errno(EBADF);
        return why ? endpoint_type() : ask(local_address_of(core_->handle.native()), why);
    }
    [[nodiscard]] endpoint_type local_endpoint() const {
        asio::error_code why;
        endpoint_type found = local_endpoint(why);
        detail::asio_throw_if(why, "local_endpoint");
        return found;
    }

    /// void(asio::error_code), once a read (or accept), or a write, would not wait. wait_error is not offered
    /// and ends with operation_not_supported: an error ends a wait to read, too.
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_wait(wait_type what, Token&& token = Token()) {
        return detail::asio_initiate<void(asio::error_code), detail::asio_ready<Handle>>(
            core_in_use(), executor_, token, what);
    }

protected:
    using core = detail::asio_core<Handle>;
    template <class, class, class>
    friend class socket_object;

    explicit socket_object(const executor_type& executor)
        : executor_(executor), context_(&detail::asio_context_of(executor_)) {}
    // A moved-from socket stays usable, closed, as in Asio.
    template <class Other>
        requires std::convertible_to<Other, Executor>
    explicit socket_object(socket_object<Protocol, Other, Handle>&& other) noexcept
        : executor_(other.executor_),
          context_(other.context_),
          core_(std::move(other.core_)),
          is_non_blocking_(std::exchange(other.is_non_blocking_, false)) {}
    socket_object(socket_object&& other) noexcept
        : executor_(other.executor_),
          context_(other.context_),
          core_(std::move(other.core_)),
          is_non_blocking_(std::exchange(other.is_non_blocking_, false)) {}
    socket_object& operator=(socket_object&& other) noexcept {
        if (this == &other) return *this;
        let_go();
        executor_ = other.executor_;
        context_ = other.context_;
        core_ = std::move(other.core_);
        is_non_blocking_ = std::exchange(other.is_non_blocking_, false);
        return *this;
    }
    ~socket_object() { let_go(); }

    void let_go() noexcept {
        if (core_ != nullptr) core_->cancel_all(core_);
        core_.reset();
    }
    // For an operation. The core of a closed socket refuses it.
    [[nodiscard]] const std::shared_ptr<core>& core_in_use() {
        if (core_ == nullptr) core_ = detail::make_asio_core<core>(*context_, Handle());
        return core_;
    }
    [[nodiscard]] Handle& handle() { return core_in_use()->handle; }
    void take(int descriptor, int type) {
        struct native_handle native = describe_socket(descriptor, type == SOCK_STREAM);
        // See listening_socket_handle. It succeeds for every open descriptor.
        if constexpr (std::same_as<Handle, listening_socket_handle>) (void)make_nonblocking(native);
        adopt(Handle(native));
    }
    [[nodiscard]] static endpoint_type ask(const result<socket_address>& answer, asio::error_code& why) {
        why = answer.has_value() ? asio::error_code() : detail::asio_error(answer.error());
        return why ? endpoint_type() : detail::endpoint_of<endpoint_type>(*answer);
    }
    [[nodiscard]] static const sockaddr* as_sockaddr(const endpoint_type& from) noexcept {
        return reinterpret_cast<const sockaddr*>(from.data());
    }
    [[nodiscard]] static socklen_t length_of(const endpoint_type& from) noexcept {
        return static_cast<socklen_t>(from.size());
    }
    // How long the operations that block wait.
    [[nodiscard]] deadline time_limit() const noexcept {
        return is_non_blocking_ ? deadline::zero() : deadline();
    }
    // Options that depend on the protocol (hop limits) want to know which it is.
    [[nodiscard]] auto protocol_in_use() const noexcept {
        endpoint_type local;
        auto length = static_cast<socklen_t>(local.capacity());
        if (::getsockname(native_handle(), reinterpret_cast<sockaddr*>(local.data()), &length) == 0)
            local.resize(length);
        return local.protocol();
    }

    executor_type executor_;
    asio_context* context_;
    std::shared_ptr<core> core_;  // null: closed
    bool is_non_blocking_ = false;
};

}  // namespace asio_names
}  // namespace sluice::io
