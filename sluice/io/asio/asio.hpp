#pragma once

#include <asio/system_error.hpp>
#include <chrono>
#include <concepts>
#include <memory>
#include <tuple>
#include <utility>

#include "sluice/io/asio/asio_operation.hpp"
#include "sluice/io/stream/socket_sender.hpp"

// Asio on our multiplexer. P2052 claims that the Networking TS can be built on it. These headers
// need Asio 1.22 or later (Debian: libasio-dev) and ASIO_STANDALONE; sluice::io itself does not.

namespace sluice::io {

namespace detail {

class asio_connect {
public:
    asio_connect(asio_core<socket_handle>& core, const socket_address& peer) noexcept
        : core_(core), peer_(peer) {}
    [[nodiscard]] auto sender() noexcept { return async_connect(core_.handle, peer_); }
    [[nodiscard]] static auto finish(result<void>&& outcome) noexcept {
        return std::tuple(asio_outcome(outcome));
    }

private:
    asio_core<socket_handle>& core_;
    socket_address peer_;
};

class asio_accept;

}  // namespace detail

/// A handle as an Asio stream: AsyncReadStream, AsyncWriteStream, SyncReadStream and
/// SyncWriteStream, so that asio::async_read, async_read_until, async_write and operations composed
/// of them work on our multiplexer.
///
/// Errors are asio::error_code: the end of the file is asio::error::eof, a cancelled operation is
/// asio::error::operation_aborted, and all others are their errno in the system category.
/// Completion: never inside the initiating function; on the handler's associated executor.
/// Cancellation: by the handler's slot (all types: an operation that is cancelled after it has
/// transferred some bytes succeeds with those), by cancel(), or by close(). Several operations may
/// be pending; those of one direction are served in order.
/// Allocates: one node when created. Each operation allocates its state, with the handler, through
/// the handler's associated allocator, and frees it before the handler runs. Nothing else is
/// allocated here, but a handler's executor of another kind (a strand, another context) may
/// allocate to take a function.
/// Thread safety: as Asio's: one thread at a time. It is created, and released with its last
/// operation, on the multiplexer's thread or while the multiplexer does not run.
template <std::derived_from<io_handle> Handle>
class asio_stream {
public:
    using executor_type = asio_context::executor_type;
    using lowest_layer_type = asio_stream;

    /// Constructs a closed stream.
    asio_stream() noexcept = default;

    /// Takes ownership of a handle and attaches it to the context's multiplexer. Errors: those of
    /// set_multiplexer.
    [[nodiscard]] static result<asio_stream> make(asio_context& context, Handle handle) {
        if (auto set = handle.set_multiplexer(&context.multiplexer()); not set) return failure(set.error());
        asio_stream made;
        made.core_ = detail::make_asio_core<core>(context, std::move(handle));
        return made;
    }
    asio_stream(asio_stream&&) noexcept = default;
    asio_stream& operator=(asio_stream&& other) noexcept {
        if (this != &other) {
            close();
            core_ = std::move(other.core_);
        }
        return *this;
    }
    ~asio_stream() { close(); }

    [[nodiscard]] executor_type get_executor() const noexcept {
        ENSURE(core_ != nullptr, "a closed object has no executor, and no operations");
        return core_->context.get_executor();
    }
    [[nodiscard]] asio_stream& lowest_layer() noexcept { return *this; }
    [[nodiscard]] Handle& handle() noexcept { return core_->handle; }
    [[nodiscard]] bool is_open() const noexcept { return core_ != nullptr; }

    /// Cancels the pending operations. Their handlers get operation_aborted unless the operation
    /// was faster.
    void cancel() noexcept {
        if (core_ != nullptr) core_->cancel_all(core_);
    }
    /// Cancels, and closes the handle when the last operation has completed.
    void close() noexcept {
        cancel();
        core_.reset();
    }

    /// void(asio::error_code, std::size_t): the bytes read, at least one, or the error. Up to 16
    /// buffers.
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_read_some(const Buffers& buffers, Token&& token = Token()) {
        using work = detail::asio_transfer<Handle, buffer, Buffers>;
        return detail::asio_initiate<void(asio::error_code, std::size_t), work>(core_, get_executor(), token,
                                                                                buffers);
    }
    /// void(asio::error_code, std::size_t): the bytes written, at least one, or the error. Up to 16
    /// buffers.
    template <class Buffers, class Token = asio::default_completion_token_t<executor_type>>
    auto async_write_some(const Buffers& buffers, Token&& token = Token()) {
        using work = detail::asio_transfer<Handle, const_buffer, Buffers>;
        return detail::asio_initiate<void(asio::error_code, std::size_t), work>(core_, get_executor(), token,
                                                                                buffers);
    }
    /// void(asio::error_code). For a socket created by socket_handle::create.
    template <class Token = asio::default_completion_token_t<executor_type>>
        requires std::same_as<Handle, socket_handle>
    auto async_connect(const socket_address& peer, Token&& token = Token()) {
        return detail::asio_initiate<void(asio::error_code), detail::asio_connect>(core_, get_executor(),
                                                                                   token, peer);
    }

    /// Blocks: until bytes could be read; until everything is written.
    template <class Buffers>
    std::size_t read_some(const Buffers& buffers, asio::error_code& why) noexcept {
        detail::asio_pieces<buffer, Buffers> pieces(buffers);
        why.clear();
        if (pieces.is_empty()) return 0;
        return detail::asio_transferred(core_->handle.read(io_request<buffers_type>{pieces.all()}), true,
                                        why);
    }
    template <class Buffers>
    std::size_t write_some(const Buffers& buffers, asio::error_code& why) noexcept {
        detail::asio_pieces<const_buffer, Buffers> pieces(buffers);
        return detail::asio_transferred(
            core_->handle.write_some(io_request<const_buffers_type>{pieces.all()}), false, why);
    }
    /// Throws: asio::system_error.
    template <class Buffers>
    std::size_t read_some(const Buffers& buffers) {
        return detail::asio_or_throw("read_some",
                                     [&](asio::error_code& why) { return read_some(buffers, why); });
    }
    template <class Buffers>
    std::size_t write_some(const Buffers& buffers) {
        return detail::asio_or_throw("write_some",
                                     [&](asio::error_code& why) { return write_some(buffers, why); });
    }

private:
    using core = detail::asio_core<Handle>;

    std::shared_ptr<core> core_;
};

/// A listening socket with Asio's async_accept. Otherwise as asio_stream.
class asio_acceptor {
public:
    using executor_type = asio_context::executor_type;

    /// Errors: those of set_multiplexer.
    [[nodiscard]] static result<asio_acceptor> make(asio_context& context, listening_socket_handle handle) {
        if (auto set = handle.set_multiplexer(&context.multiplexer()); not set) return failure(set.error());
        asio_acceptor made;
        made.core_ = detail::make_asio_core<core>(context, std::move(handle));
        return made;
    }
    asio_acceptor(asio_acceptor&&) noexcept = default;
    asio_acceptor& operator=(asio_acceptor&&) = delete;
    ~asio_acceptor() { close(); }

    [[nodiscard]] executor_type get_executor() const noexcept {
        ENSURE(core_ != nullptr, "a closed object has no executor, and no operations");
        return core_->context.get_executor();
    }
    [[nodiscard]] listening_socket_handle& handle() noexcept { return core_->handle; }
    [[nodiscard]] bool is_open() const noexcept { return core_ != nullptr; }
    void cancel() noexcept {
        if (core_ != nullptr) core_->cancel_all(core_);
    }
    void close() noexcept {
        cancel();
        core_.reset();
    }

    /// void(asio::error_code, asio_stream<socket_handle>), the stream on the same
    /// context; closed on error.
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_accept(Token&& token = Token()) {
        return detail::asio_initiate<void(asio::error_code, asio_stream<socket_handle>), detail::asio_accept>(
            core_, get_executor(), token, nothing{});
    }

private:
    using core = detail::asio_core<listening_socket_handle>;
    struct nothing {};

    asio_acceptor() noexcept = default;

    std::shared_ptr<core> core_;
};

namespace detail {

class asio_accept {
public:
    asio_accept(asio_core<listening_socket_handle>& core, auto) noexcept : core_(core) {}
    [[nodiscard]] auto sender() noexcept { return async_accept(core_.handle); }
    [[nodiscard]] auto finish(result<accepted>&& outcome) {
        if (not outcome) return std::tuple(asio_error(outcome.error()), asio_stream<socket_handle>());
        auto stream = asio_stream<socket_handle>::make(core_.context, std::move(outcome->socket));
        if (not stream) return std::tuple(asio_error(stream.error()), asio_stream<socket_handle>());
        return std::tuple(asio::error_code(), std::move(*stream));
    }

private:
    asio_core<listening_socket_handle>& core_;
};

class asio_timer_core final : public asio_core_base {
public:
    using asio_core_base::asio_core_base;

    io_multiplexer::time_point expiry{};
};

class asio_wait {
public:
    asio_wait(asio_timer_core& core, auto) noexcept : core_(core) {}
    [[nodiscard]] auto sender() noexcept { return async_sleep(core_.context.multiplexer(), core_.expiry); }
    [[nodiscard]] static auto finish(result<void>&& outcome) noexcept {
        return std::tuple(asio_outcome(outcome));
    }

private:
    asio_timer_core& core_;
};

}  // namespace detail

/// A timer on the multiplexer's clock, used as asio::steady_timer. Otherwise as asio_stream.
class asio_timer {
public:
    using executor_type = asio_context::executor_type;
    using time_point = io_multiplexer::time_point;
    using duration = io_multiplexer::duration;

    explicit asio_timer(asio_context& context)
        : core_(detail::make_asio_core<detail::asio_timer_core>(context)) {}
    asio_timer(asio_timer&&) noexcept = default;
    asio_timer& operator=(asio_timer&&) = delete;
    ~asio_timer() { cancel(); }

    [[nodiscard]] executor_type get_executor() const noexcept {
        ENSURE(core_ != nullptr, "a closed object has no executor, and no operations");
        return core_->context.get_executor();
    }
    [[nodiscard]] time_point expiry() const noexcept { return core_->expiry; }

    /// Cancels the pending waits and sets the expiry of later ones.
    void expires_at(time_point when) noexcept {
        cancel();
        core_->expiry = when;
    }
    void expires_after(duration time) noexcept { expires_at(core_->context.multiplexer().now() + time); }
    void cancel() noexcept {
        if (core_ != nullptr) core_->cancel_all(core_);
    }

    /// void(asio::error_code).
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_wait(Token&& token = Token()) {
        return detail::asio_initiate<void(asio::error_code), detail::asio_wait>(core_, get_executor(), token,
                                                                                nothing{});
    }

private:
    struct nothing {};

    std::shared_ptr<detail::asio_timer_core> core_;
};

}  // namespace sluice::io
