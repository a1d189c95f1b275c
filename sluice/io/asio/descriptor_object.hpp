#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>

#include <asio/async_result.hpp>
#include <asio/error.hpp>
#include <asio/execution_context.hpp>
#include <cerrno>
#include <concepts>
#include <memory>
#include <utility>

#include "sluice/io/asio/asio_operation.hpp"
#include "sluice/io/asio/core.hpp"
#include "sluice/io/asio/ready_wait.hpp"

namespace sluice::io::asio_names {

template <class Context>
concept asio_execution_context = std::convertible_to<Context&, asio::execution_context&>;

/// The common part of sockets, acceptors and descriptors: the common members of Asio's basic_socket
/// and posix::basic_descriptor, with their meaning. `Base` is Asio's class with the constants.
///
/// Each member that may fail has a form that throws asio::system_error and one that sets an
/// error_code. Differences from Asio: close() while operations are pending closes the descriptor
/// when the last of them has ended; the descriptor stays in blocking mode unless
/// native_non_blocking changes it. Thread safety: as Asio's: one thread at a time, which may differ
/// from the thread that runs the context.
template <class Base, class Executor, class Handle>
class descriptor_object : public Base {
public:
    using executor_type = Executor;
    using native_handle_type = int;
    using lowest_layer_type = descriptor_object;
    using typename Base::wait_type;

    [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }
    [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
    [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return *this; }
    [[nodiscard]] bool is_open() const noexcept { return core_ != nullptr and core_->handle.is_valid(); }
    [[nodiscard]] native_handle_type native_handle() const noexcept {
        return core_ != nullptr ? core_->handle.descriptor() : -1;
    }

    /// Takes ownership of a handle of sluice::io, and replaces the present one.
    void adopt(Handle&& handle) {
        let_go();
        core_ = detail::make_asio_core<core>(*context_, std::move(handle));
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
    /// Returns the descriptor, which the caller owns. Fails with EBUSY while
    /// operations are pending.
    [[nodiscard]] native_handle_type release(asio::error_code& why) {
        why = is_open() ? asio::error_code() : detail::asio_errno(EBADF);
        if (not why) why = core_->detach(core_);
        return why ? -1 : core_->handle.release().descriptor;
    }
    [[nodiscard]] native_handle_type release() {
        return detail::asio_or_throw("release", [&](asio::error_code& why) { return release(why); });
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

    /// Returns whether blocking operations fail with would_block instead.
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

    /// Blocks: until a read (or accept), or a write, would not wait; with wait_error, until there
    /// is out-of-band data, an error or a hang-up. Fails with would_block instead if non_blocking()
    /// is set.
    void wait(wait_type what, asio::error_code& why) {
        why = detail::asio_wait_now(handle().native(), detail::asio_condition_of<Base>(what),
                                    not is_non_blocking_);
    }
    void wait(wait_type what) {
        asio::error_code why;
        wait(what, why);
        detail::asio_throw_if(why, "wait");
    }
    /// void(asio::error_code), as soon as wait() would return. With wait_error, one more descriptor
    /// is open until then. Errors: operation_aborted; with wait_error also EMFILE, and EPERM for a
    /// regular file.
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_wait(wait_type what, Token&& token = Token()) {
        return detail::asio_initiate<void(asio::error_code), detail::asio_ready<Handle>>(
            core_in_use(), executor_, token, detail::asio_condition_of<Base>(what));
    }

protected:
    using handle_type = Handle;
    using core = detail::asio_core<Handle>;
    template <class, class, class>
    friend class descriptor_object;

    explicit descriptor_object(const executor_type& executor)
        : executor_(executor), context_(&detail::asio_context_of(executor_)) {}
    // A moved-from socket stays usable, closed, as in Asio.
    template <class Other>
        requires std::convertible_to<Other, Executor>
    explicit descriptor_object(descriptor_object<Base, Other, Handle>&& other) noexcept
        : executor_(other.executor_),
          context_(other.context_),
          core_(std::move(other.core_)),
          is_non_blocking_(std::exchange(other.is_non_blocking_, false)) {}
    descriptor_object(descriptor_object&& other) noexcept
        : executor_(other.executor_),
          context_(other.context_),
          core_(std::move(other.core_)),
          is_non_blocking_(std::exchange(other.is_non_blocking_, false)) {}
    descriptor_object& operator=(descriptor_object&& other) noexcept {
        if (this == &other) return *this;
        let_go();
        executor_ = other.executor_;
        context_ = other.context_;
        core_ = std::move(other.core_);
        is_non_blocking_ = std::exchange(other.is_non_blocking_, false);
        return *this;
    }
    ~descriptor_object() { let_go(); }

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

    // Returns how long blocking operations wait.
    [[nodiscard]] deadline time_limit() const noexcept {
        return is_non_blocking_ ? deadline::zero() : deadline();
    }

    executor_type executor_;
    asio_context* context_;
    std::shared_ptr<core> core_;  // null: closed
    bool is_non_blocking_ = false;
};

}  // namespace sluice::io::asio_names
