#pragma once

#include <array>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/bind_allocator.hpp>
#include <asio/buffer.hpp>
#include <asio/dispatch.hpp>
#include <asio/execution.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/prefer.hpp>
#include <atomic>
#include <concepts>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sluice/io/asio/asio_context.hpp"
#include "sluice/io/asio/core.hpp"
#include "sluice/io/sender/atomic_sender.hpp"

// The start and end of the operations of asio.hpp; for that header, not for users.
namespace sluice::io::detail {

/// The segments of an Asio buffer sequence: at most as many as Asio's own composed operations pass
/// at a time.
template <class Piece, class Buffers>
class asio_pieces {
public:
    explicit asio_pieces(const Buffers& buffers) noexcept {
        using view =
            std::conditional_t<std::same_as<Piece, buffer>, asio::mutable_buffer, asio::const_buffer>;
        using byte = std::conditional_t<std::same_as<Piece, buffer>, std::byte, const std::byte>;
        const auto end = asio::buffer_sequence_end(buffers);
        for (auto at = asio::buffer_sequence_begin(buffers); at != end and count_ < pieces_max; ++at) {
            const view piece(*at);
            if (piece.size() != 0) pieces_[count_++] = Piece(static_cast<byte*>(piece.data()), piece.size());
        }
    }
    [[nodiscard]] std::span<Piece> all() noexcept { return {pieces_.data(), count_}; }
    [[nodiscard]] bool is_empty() const noexcept { return count_ == 0; }

private:
    static constexpr std::size_t pieces_max =
        std::is_convertible_v<const Buffers&, asio::const_buffer> ? 1 : 16;

    std::array<Piece, pieces_max> pieces_;
    std::size_t count_ = 0;
};

/// Returns the bytes transferred. Sets `why` to the error that Asio reports for the transfer, which
/// is eof for a read that returned no bytes.
template <class Result>
std::size_t asio_transferred(const Result& outcome, bool end_if_none, asio::error_code& why) noexcept {
    const std::size_t count = outcome.bytes_transferred();
    why.clear();
    if (not outcome.has_value()) {
        why = asio_error(outcome.error());
    } else if (count == 0 and end_if_none) {
        why = asio::error::eof;
    }
    return count;
}

// Each kind of operation is a class: its arguments, `sender()`, and `finish()`, which returns the
// handler's arguments. A kind that may have nothing to do has `nothing()`.

template <class Handle, class Piece, class Buffers>
class asio_transfer : public asio_handle_work<Handle> {
public:
    static constexpr bool is_read = std::same_as<Piece, buffer>;
    using core_type = asio_core<Handle>;

    asio_transfer(core_type& core, const Buffers& buffers) noexcept
        : asio_handle_work<Handle>(core), pieces_(buffers) {}

    [[nodiscard]] auto sender() noexcept {
        if constexpr (is_read) {
            return async_read(this->handle(), io_request<buffers_type>{pieces_.all()});
        } else {
            return io::async_write_some(this->handle(), io_request<const_buffers_type>{pieces_.all()});
        }
    }
    // A read of no bytes would wait for data on a socket.
    [[nodiscard]] bool is_nothing() noexcept {
        return pieces_.is_empty() or asio_handle_work<Handle>::is_nothing();
    }
    [[nodiscard]] auto nothing() const noexcept { return std::tuple(this->refused(), std::size_t{0}); }

    template <class Result>
    [[nodiscard]] auto finish(Result&& outcome) noexcept {
        asio::error_code why;
        const std::size_t count = asio_transferred(outcome, is_read, why);
        return std::tuple(why, count);
    }

private:
    asio_pieces<Piece, Buffers> pieces_;
};

/// An executor of another context, kept busy until a handler has been passed to it.
template <class Executor>
class asio_elsewhere {
public:
    explicit asio_elsewhere(const Executor& from)
        : executor_(asio::prefer(from, asio::execution::outstanding_work.tracked)) {}
    [[nodiscard]] const auto& executor() const noexcept { return executor_; }

private:
    std::decay_t<decltype(asio::prefer(std::declval<const Executor&>(),
                                       asio::execution::outstanding_work.tracked))>
        executor_;
};
// For executors of the Networking TS.
template <class Executor>
    requires(not asio::execution::is_executor<Executor>::value)
class asio_elsewhere<Executor> {
public:
    explicit asio_elsewhere(const Executor& from) : work_(from) {}
    [[nodiscard]] Executor executor() const noexcept { return work_.get_executor(); }

private:
    asio::executor_work_guard<Executor> work_;
};

/// An Asio operation: the I/O, the handler, and their link to a context. Lives in memory of the
/// handler's allocator from begin() to deliver().
///
/// Thread safety: begin() and cancel() on any thread; everything else on the multiplexer's. With
/// several threads, one of them launches it, and another may deliver it before launch() has
/// returned. Cancellations hold the core's lock, and so do the steps that create the I/O and that
/// remove the operation.
template <class Work, class Core, class Handler, class Executor>
class asio_operation final : public asio_pending {
    using allocator_type = typename std::allocator_traits<
        asio::associated_allocator_t<Handler>>::template rebind_alloc<asio_operation>;
    using traits = std::allocator_traits<allocator_type>;
    using executor_type = asio::associated_executor_t<Handler, Executor>;
    using elsewhere_type = asio_elsewhere<executor_type>;

    struct relay {
        asio_operation* self;
        template <class Result>
        void set_value(Result&& outcome) noexcept {
            self->outcome_.emplace(std::forward<Result>(outcome));
        }
        void set_done() noexcept { self->done(); }
    };
    // With several threads it may be called after the operation has ended, and then finds none with
    // its number.
    struct canceller {
        asio_operation* self;
        std::weak_ptr<Core> core;
        std::uint64_t number;
        void operator()(asio::cancellation_type_t wanted) const noexcept {
            if (wanted == asio::cancellation_type::none) return;
            if (number == 0) {
                self->cancel();
            } else if (const std::shared_ptr<Core> kept = core.lock()) {
                kept->cancel_number(number);
            }
        }
    };
    using sender_type = decltype(std::declval<Work&>().sender());

public:
    template <class From, class Argument>
    asio_operation(const std::shared_ptr<Core>& core, const Executor& own, From&& handler,
                   const Argument& argument)
        : core_(core), handler_(std::forward<From>(handler)), work_(*core, argument) {
        // An operation on our own multiplexer already counts as work.
        const auto executor = asio::get_associated_executor(handler_, own);
        if (not is_ours(executor, core->context)) {
            elsewhere_.emplace(executor);
        }
        auto slot = asio::get_associated_cancellation_slot(handler_);
        if (not slot.is_connected()) return;
        if (core->is_shared) number = core->next_number();
        slot.template emplace<canceller>(this, std::weak_ptr<Core>(core), number);
    }

    template <class From, class Argument>
    static void begin(const std::shared_ptr<Core>& core, const Executor& own, From&& handler,
                      const Argument& argument) {
        allocator_type allocator(asio::get_associated_allocator(handler));
        asio_operation* const fresh = traits::allocate(allocator, 1);
        try {
            std::construct_at(fresh, core, own, std::forward<From>(handler), argument);
        } catch (...) {
            traits::deallocate(allocator, fresh, 1);
            throw;
        }
        fresh->initiate();
    }

    void cancel() noexcept override {
        // seq_cst, both: either we see that it has been launched, or launch() sees
        // that it is cancelled.
        is_cancelled_.store(true, std::memory_order_seq_cst);
        if (is_launched_.load(std::memory_order_seq_cst)) io_->cancel();
    }
    [[nodiscard]] bool is_cancelled() const noexcept override {
        // Checked on one thread where it matters.
        return is_cancelled_.load(std::memory_order_relaxed);
    }

private:
    // Returns whether functions passed to `executor` run where this operation completes.
    static bool is_ours(const executor_type& executor, const asio_context& context) noexcept {
        const auto* const own = asio_own_executor(executor);
        return own != nullptr and & own->query(asio::execution::context) == &context;
    }

    void initiate() noexcept {
        io_multiplexer& multiplexer = core_->context.multiplexer();
        core_->context.begin_outstanding();
        // A cancellation may come before it is launched.
        if (core_->is_shared) core_->add_pending(*this);
        if (not multiplexer.is_owner()) {
            multiplexer.post(*this);
            return;
        }
        const asio_pending* const before = std::exchange(initiating_here, this);
        launch();
        // The operation may be gone; if it completes here, the item that delivers was posted.
        initiating_here = before;
    }

    // The item posted by initiate(), on another thread, or by done().
    void invoke() noexcept override {
        if (is_finished_) {
            deliver();
        } else {
            launch();
        }
    }

    void launch() noexcept {
        if (core_->context.is_discarding() or not is_worth_while()) {
            done();
            return;
        }
        prepare();
        io_->launch();  // the operation may be gone after this
    }

    void prepare() noexcept {
        const typename Core::guard in(*core_);
        core_->context.enlist(*core_);
        core_->add_pending(*this);
        io_.emplace(work_.sender(), relay{this});
        const bool fresh = io_->claim();  // from here on its cancellation counts
        ENSURE(fresh);
        is_launched_.store(true, std::memory_order_seq_cst);
        if (is_cancelled_.load(std::memory_order_seq_cst)) [[unlikely]]
            io_->cancel();
    }

    void done() noexcept {
        if (wants_more()) {
            unlaunch();
            launch();
        } else if (initiating_here == this) {
            // The handler must not run inside the initiating function.
            is_finished_ = true;
            core_->context.multiplexer().post(*this);
        } else {
            deliver();
        }
    }

    // Until the next launch a cancellation is only recorded.
    void unlaunch() noexcept {
        const typename Core::guard in(*core_);
        // Read with the lock, or by this thread only.
        is_launched_.store(false, std::memory_order_relaxed);
        outcome_.reset();
    }

    void deliver() noexcept {
        // With several threads, another operation may use the slot now; its canceller will find no
        // operation.
        if (auto slot = asio::get_associated_cancellation_slot(handler_);
            slot.is_connected() and not core_->is_shared)
            slot.clear();
        core_->remove_pending(*this);
        asio_context& context = core_->context;
        auto arguments = take_arguments();
        auto elsewhere = std::move(elsewhere_);
        Handler handler(std::move(handler_));
        const auto associated = asio::get_associated_allocator(handler);
        // The memory is freed before the handler runs, because the handler's next operation needs
        // as much.
        allocator_type allocator(associated);
        std::destroy_at(this);
        traits::deallocate(allocator, this, 1);
        context.end_outstanding();

        auto call = [&] { std::apply(std::move(handler), std::move(arguments)); };
        if (not elsewhere.has_value()) {
            context.invoke(call);
            return;
        }
        context.invoke([&] {
            asio::dispatch(elsewhere->executor(),
                           asio::bind_allocator(associated, [handler = std::move(handler),
                                                             arguments = std::move(arguments)]() mutable {
                               std::apply(std::move(handler), std::move(arguments));
                           }));
        });
    }

    // Returns whether there is I/O to do. If not, the work provides the handler's arguments.
    [[nodiscard]] bool is_worth_while() noexcept {
        if constexpr (requires { work_.nothing(); }) return not work_.is_nothing();
        return true;
    }
    // Returns whether the operation needs another round, like a wait for a clock that has been set
    // back.
    [[nodiscard]] bool wants_more() noexcept {
        if constexpr (requires { work_.wants_more(); }) {
            return outcome_.has_value() and outcome_->has_value() and not is_cancelled() and
                   work_.wants_more();
        }
        return false;
    }
    [[nodiscard]] auto take_arguments() noexcept {
        if constexpr (requires { work_.nothing(); }) {
            if (not outcome_.has_value()) return work_.nothing();
        }
        // It has no outcome if the context is being destroyed; then it is not read.
        if (not outcome_.has_value()) outcome_.emplace(failure({ECANCELED, "asio_context destroyed"}));
        return work_.finish(*std::move(outcome_));
    }

    std::shared_ptr<Core> core_;
    Handler handler_;
    Work work_;
    std::optional<elsewhere_type> elsewhere_;  // the handler's executor, if it is not ours
    std::optional<typename sender_type::result_type> outcome_;
    bool is_finished_ = false;
    std::atomic<bool> is_launched_{false};
    std::atomic<bool> is_cancelled_{false};
    // Created where it is launched.
    std::optional<atomic_io_operation_connection<sender_type, relay>> io_;
};

/// The initiation function object that asio::async_initiate calls with the handler made from a
/// completion token.
template <class Work, class Core, class Executor>
struct asio_initiation {
    using executor_type = Executor;

    template <class Handler, class Argument>
    void operator()(Handler&& handler, const Argument& argument) const {
        asio_operation<Work, Core, std::decay_t<Handler>, Executor>::begin(
            core, own, std::forward<Handler>(handler), argument);
    }
    [[nodiscard]] executor_type get_executor() const noexcept { return own; }

    std::shared_ptr<Core> core;
    Executor own;  // the object's executor, for handlers without one
};

template <class Signature, class Work, class Core, class Executor, class Token, class Argument>
auto asio_initiate(const std::shared_ptr<Core>& core, const Executor& own, Token& token,
                   const Argument& argument) {
    return asio::async_initiate<Token, Signature>(asio_initiation<Work, Core, Executor>{core, own}, token,
                                                  argument);
}

}  // namespace sluice::io::detail
