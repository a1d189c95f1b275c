#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>

#include "sluice/io/asio/ready_wait.hpp"
#include "sluice/io/asio/socket_object.hpp"
#include "sluice/io/asio/transfers.hpp"
#include "sluice/io/sender/user_operation.hpp"

// Transfers with message flags; for the adapter's headers, not for users.
namespace sluice::io::detail {

/// One call of recvmsg(2) or sendmsg(2) with flags, which the kernel checks. A receive of
/// out-of-band data waits for it.
class asio_message_call final : public ready_call {
public:
    /// The number of bytes, and the peer of a datagram that was received.
    struct moved {
        std::size_t count = 0;
        socket_address peer{};
    };
    using result_type = result<moved>;
    static constexpr const char* name = "transfer with message flags";

    asio_message_call(std::span<buffer> into, int flags) noexcept
        : pieces_(into.data(), into.size()), flags_(flags), which_(direction::in) {}
    /// `to` unspecified: the connected peer.
    asio_message_call(std::span<const_buffer> from, int flags, const socket_address& to) noexcept
        // A send only reads the buffers; the kernel has one type for both.
        : pieces_(reinterpret_cast<const buffer*>(from.data()), from.size()),
          flags_(flags),
          which_(direction::out),
          moved_{.peer = to} {}

    [[nodiscard]] std::optional<int> attempt(const native_handle& on) noexcept override {
        // The kernel returns EINVAL for a receive before the data arrives: that must wait, not
        // fail.
        if (is_urgent() and not asio_is_exceptional(socket_, 0)) return std::nullopt;
        const ssize_t count = call(is_urgent() ? socket_ : on.descriptor);
        if (count < 0) return errno == EAGAIN ? std::nullopt : std::optional<int>(errno);
        moved_.count = static_cast<std::size_t>(count);
        return 0;
    }
    [[nodiscard]] result_type take() const noexcept { return moved_; }

    [[nodiscard]] direction waits_for() const noexcept { return which_; }
    [[nodiscard]] bool is_urgent() const noexcept {
        return which_ == direction::in and (flags_ & MSG_OOB) != 0;
    }
    /// For is_urgent(): the attempts are made when another handle is ready.
    void set_socket(int descriptor) noexcept { socket_ = descriptor; }

private:
    [[nodiscard]] ssize_t call(int descriptor) noexcept {
        socket_address& peer = moved_.peer;
        const bool has_peer = which_ == direction::in or peer.family() != address_family::unspecified;
        msghdr message{};
        message.msg_name = has_peer ? peer.data() : nullptr;
        message.msg_namelen = which_ == direction::in ? socket_address::capacity : has_peer ? peer.size() : 0;
        message.msg_iov = const_cast<iovec*>(reinterpret_cast<const iovec*>(pieces_.data()));
        message.msg_iovlen = pieces_.size();
        const int flags = flags_ | MSG_DONTWAIT | MSG_NOSIGNAL;
        ssize_t count = -1;
        do {
            count = which_ == direction::in ? ::recvmsg(descriptor, &message, flags)
                                            : ::sendmsg(descriptor, &message, flags);
        } while (count < 0 and errno == EINTR);
        if (which_ == direction::in and count >= 0) peer.resize(message.msg_namelen);
        return count;
    }

    std::span<const buffer> pieces_;
    int flags_;
    direction which_;
    int socket_ = -1;
    moved moved_{};
};

/// Carries out a call. Waits unless `may_wait` is false; then it fails with would_block instead.
inline asio_message_call::moved asio_message_now(const native_handle& on, asio_message_call call,
                                                 bool may_wait, asio::error_code& why) noexcept {
    call.set_socket(on.descriptor);
    for (;;) {
        if (const std::optional<int> code = call.attempt(on)) {
            why = *code == 0 ? asio::error_code() : asio_errno(*code);
            return *code == 0 ? *call.take() : asio_message_call::moved{};
        }
        const asio_condition what = call.is_urgent()                    ? asio_condition::exceptional
                                    : call.waits_for() == direction::in ? asio_condition::readable
                                                                        : asio_condition::writable;
        why = asio_wait_now(on, what, may_wait);
        if (why) return {};
    }
}

/// The arguments of a transfer with flags.
template <class Buffers, class Endpoint>
struct asio_message_request {
    Buffers buffers;
    int flags;
    bool is_stream = false;    // a receive of no bytes means the end
    Endpoint* from = nullptr;  // gets the sender of a datagram; may be null
    socket_address to{};       // unspecified: the connected peer
};

/// Returns the error code of a receive that has ended; stores the sender.
template <class Request>
[[nodiscard]] asio::error_code asio_message_received(const Request& asked,
                                                     const asio_message_call::moved& outcome) {
    using endpoint = std::remove_pointer_t<decltype(asked.from)>;
    if (asked.from != nullptr) *asked.from = endpoint_of<endpoint>(outcome.peer);
    if (asked.is_stream and outcome.count == 0) return asio::error::eof;
    return {};
}

/// A transfer with message flags: `Piece` is buffer to receive, const_buffer to send.
template <class Piece, class Buffers, class Endpoint>
class asio_message : public asio_handle_work<socket_handle> {
public:
    using argument = asio_message_request<Buffers, Endpoint>;
    static constexpr bool is_receive = std::same_as<Piece, buffer>;

    asio_message(asio_core<socket_handle>& core, const argument& asked)
        : asio_handle_work(core), asked_(asked), pieces_(asked.buffers) {}

    [[nodiscard]] auto sender() noexcept {
        asio_message_call call = make_call();
        multiplexable_handle& target =
            watch_.has_value() ? static_cast<multiplexable_handle&>(*watch_) : handle();
        return call_sender<asio_message_call>(target, call.waits_for(), {}, call);
    }
    [[nodiscard]] bool is_nothing() noexcept {
        if (asked_.is_stream and is_receive and pieces_.is_empty()) return true;
        if (asio_handle_work::is_nothing()) return true;
        if (not make_call().is_urgent() or watch_.has_value()) return false;
        auto made = asio_exception_watch::create(handle().descriptor(), multiplexer());
        if (not made) return refuse(asio_error(made.error()));
        watch_.emplace(std::move(*made));
        return false;
    }
    [[nodiscard]] auto nothing() const noexcept { return std::tuple(refused(), std::size_t{0}); }
    [[nodiscard]] auto finish(result<asio_message_call::moved>&& outcome) {
        if (not outcome) return std::tuple(asio_error(outcome.error()), std::size_t{0});
        asio::error_code why;
        if constexpr (is_receive) why = asio_message_received(asked_, *outcome);
        return std::tuple(why, outcome->count);
    }

private:
    [[nodiscard]] asio_message_call make_call() noexcept {
        if constexpr (is_receive) {
            asio_message_call made(pieces_.all(), asked_.flags);
            made.set_socket(handle().descriptor());
            return made;
        } else {
            return asio_message_call(pieces_.all(), asked_.flags, asked_.to);
        }
    }

    argument asked_;
    asio_pieces<Piece, Buffers> pieces_;
    std::optional<asio_exception_watch> watch_;
};

/// The same, blocking.
template <class Piece, class Buffers, class Endpoint>
std::size_t asio_message_now(const native_handle& on, const asio_message_request<Buffers, Endpoint>& asked,
                             bool may_wait, asio::error_code& why) {
    asio_pieces<Piece, Buffers> pieces(asked.buffers);
    why.clear();
    if constexpr (std::same_as<Piece, buffer>) {
        if (asked.is_stream and pieces.is_empty()) return 0;
        const auto outcome =
            asio_message_now(on, asio_message_call(pieces.all(), asked.flags), may_wait, why);
        if (not why) why = asio_message_received(asked, outcome);
        return outcome.count;
    } else {
        return asio_message_now(on, asio_message_call(pieces.all(), asked.flags, asked.to), may_wait, why)
            .count;
    }
}

}  // namespace sluice::io::detail
