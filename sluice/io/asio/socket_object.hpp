#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <asio/error.hpp>
#include <asio/socket_base.hpp>
#include <cerrno>
#include <concepts>
#include <cstring>
#include <utility>

#include "sluice/io/asio/descriptor_object.hpp"
#include "sluice/io/call/socket_address.hpp"
#include "sluice/io/call/socket_call.hpp"
#include "sluice/io/stream/listening_socket_handle.hpp"
#include "sluice/io/stream/socket_handle.hpp"

namespace sluice::io {

namespace detail {

/// Converts an Asio endpoint to an address, and back.
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

}  // namespace detail

namespace asio_names {

/// The common part of sockets and acceptors: the members of Asio's basic_socket, with their
/// meaning. See descriptor_object.
template <class Protocol, class Executor, class Handle>
class socket_object : public descriptor_object<asio::socket_base, Executor, Handle> {
    using base = descriptor_object<asio::socket_base, Executor, Handle>;

public:
    using protocol_type = Protocol;
    using endpoint_type = typename Protocol::endpoint;
    using typename base::executor_type;
    using typename base::native_handle_type;

    template <class Any>
    void open(const Any& protocol, asio::error_code& why) {
        if (this->is_open()) {
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
    /// Takes ownership of a descriptor.
    template <class Any>
    void assign(const Any& protocol, native_handle_type native, asio::error_code& why) {
        if (this->is_open()) {
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

    void bind(const endpoint_type& local, asio::error_code& why) {
        why = detail::asio_called(::bind(this->native_handle(), as_sockaddr(local), length_of(local)));
    }
    void bind(const endpoint_type& local) {
        asio::error_code why;
        bind(local, why);
        detail::asio_throw_if(why, "bind");
    }

    template <class Option>
    void set_option(const Option& option, asio::error_code& why) {
        const auto protocol = protocol_in_use();
        why = detail::asio_called(::setsockopt(this->native_handle(), option.level(protocol),
                                               option.name(protocol), option.data(protocol),
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
        why = detail::asio_called(::getsockopt(this->native_handle(), option.level(protocol),
                                               option.name(protocol), option.data(protocol), &length));
        if (not why) option.resize(protocol, length);
    }
    template <class Option>
    void get_option(Option& option) const {
        asio::error_code why;
        get_option(option, why);
        detail::asio_throw_if(why, "get_option");
    }

    [[nodiscard]] endpoint_type local_endpoint(asio::error_code& why) const {
        why = this->is_open() ? asio::error_code() : detail::asio_errno(EBADF);
        return why ? endpoint_type() : ask(local_address_of(this->core_->handle.native()), why);
    }
    [[nodiscard]] endpoint_type local_endpoint() const {
        return detail::asio_or_throw("local_endpoint",
                                     [&](asio::error_code& why) { return local_endpoint(why); });
    }

protected:
    template <class, class, class>
    friend class socket_object;

    explicit socket_object(const executor_type& executor) : base(executor) {}
    template <class Other>
        requires std::convertible_to<Other, Executor>
    explicit socket_object(socket_object<Protocol, Other, Handle>&& other) noexcept
        : base(std::move(other)) {}
    socket_object(socket_object&&) noexcept = default;
    socket_object& operator=(socket_object&&) noexcept = default;
    ~socket_object() = default;

    void take(int descriptor, int type) {
        struct native_handle native = describe_socket(descriptor, type == SOCK_STREAM);
        // See listening_socket_handle. It succeeds for every open descriptor.
        if constexpr (std::same_as<Handle, listening_socket_handle>) (void)make_nonblocking(native);
        this->adopt(Handle(native));
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
    // Options that depend on the protocol (hop limits) need to know it.
    [[nodiscard]] auto protocol_in_use() const noexcept {
        endpoint_type local;
        auto length = static_cast<socklen_t>(local.capacity());
        if (::getsockname(this->native_handle(), reinterpret_cast<sockaddr*>(local.data()), &length) == 0)
            local.resize(length);
        return local.protocol();
    }
};

}  // namespace asio_names
}  // namespace sluice::io
