#pragma once

#include <asio/error.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution_context.hpp>
#include <asio/query.hpp>
#include <asio/system_error.hpp>
#include <atomic>
#include <cerrno>
#include <concepts>
#include <cstdint>
#include <memory>
#include <mutex>
#include <typeinfo>
#include <utility>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/asio/context.hpp"
#include "sluice/io/asio/executor.hpp"

// Common parts of the adapter's objects; for its headers, not for users.
namespace sluice::io::detail {

[[nodiscard]] inline asio::error_code asio_error(const error& why) noexcept {
    return {why.code(), asio::error::get_system_category()};
}

[[nodiscard]] inline asio::error_code asio_errno(int code) noexcept {
    return {code, asio::error::get_system_category()};
}
/// Converts errno if `returned` is negative.
[[nodiscard]] inline asio::error_code asio_called(int returned) noexcept {
    return returned < 0 ? asio_errno(errno) : asio::error_code();
}

/// The outcome of a call without a value.
[[nodiscard]] inline asio::error_code asio_outcome(const result<void>& outcome) noexcept {
    return outcome.has_value() ? asio::error_code() : asio_error(outcome.error());
}

/// Throws: asio::system_error if there is an error.
inline void asio_throw_if(const asio::error_code& why, const char* operation) {
    if (why) throw asio::system_error(why, operation);
}

/// Returns the result of a call that sets an error_code, as the throwing form of the same function
/// does. Throws: asio::system_error if there is an error.
template <class Call>
[[nodiscard]] auto asio_or_throw(const char* operation, Call call) {
    asio::error_code why;
    auto outcome = call(why);
    asio_throw_if(why, operation);
    return outcome;
}

/// Marks an execution context as an asio_context, also behind executors that wrap its own.
class asio_home final : public asio::execution_context::service {
public:
    asio_home(asio::execution_context& on, asio_context& is)
        : asio::execution_context::service(on), context(&is) {}
    // Asio requires it; used for no context, since each asio_context creates its own.
    explicit asio_home(asio::execution_context& on) : asio::execution_context::service(on) {}

    // Asio identifies a service by this member.
    inline static asio::execution_context::id id;

    asio_context* context = nullptr;

private:
    void shutdown() noexcept override {}
};

/// Returns the executor of an asio_context that a polymorphic executor holds; null if it holds
/// another kind. Asio 1.22's target() does not check the type.
template <class Executor>
[[nodiscard]] const asio_context::executor_type* asio_own_executor(const Executor& executor) noexcept {
    using own_type = asio_context::executor_type;
    if constexpr (std::same_as<Executor, own_type>) {
        return &executor;
    } else if constexpr (requires { executor.template target<own_type>(); }) {
        return executor.target_type() == typeid(own_type) ? executor.template target<own_type>() : nullptr;
    } else {
        return nullptr;
    }
}

/// The context that an executor runs on. Throws: asio::system_error (EINVAL) if
/// it is another context.
template <class Executor>
[[nodiscard]] asio_context& asio_context_of(const Executor& executor) {
    if (const auto* const own = asio_own_executor(executor)) return own->query(asio::execution::context);
    asio::execution_context& any = asio::query(executor, asio::execution::context);
    if (not asio::has_service<asio_home>(any)) {
        throw asio::system_error({EINVAL, asio::error::get_system_category()},
                                 "the executor's context is not a sluice::io::asio_context: pass one");
    }
    return *asio::use_service<asio_home>(any).context;
}

/// One pending operation, as its object sees it. The multiplexer's thread only; with several
/// threads, with the object's core locked.
class asio_pending : public posted_item {
public:
    virtual void cancel() noexcept = 0;
    [[nodiscard]] virtual bool is_cancelled() const noexcept = 0;

    list_hook<asio_pending> pending_link;
    std::uint64_t number = 0;  // the core's; with several threads, names it for cancellations

    /// The operation that this thread is initiating: its handler must not run yet.
    static inline thread_local constinit const asio_pending* initiating_here = nullptr;

protected:
    ~asio_pending() = default;
};

/// State that an object and its pending operations share, so that the object may be moved, and
/// destroyed before they have completed. The owner of the last reference destroys it, on a thread
/// where that is safe.
class asio_core_base : posted_item {
public:
    explicit asio_core_base(asio_context& on) noexcept
        : context(on), is_shared(on.multiplexer().is_for_threads()) {}
    virtual ~asio_core_base() { context.delist(*this); }

    /// Excludes other threads that run the context, if there may be any. A thread may hold several,
    /// because a cancellation can call the object again.
    class [[nodiscard]] guard {
    public:
        explicit guard(asio_core_base& of) : lock_(of.mutex_, std::defer_lock) {
            if (of.is_shared) lock_.lock();
        }

    private:
        std::unique_lock<std::recursive_mutex> lock_;
    };

    /// Cancels all pending operations. Any thread: a thread other than that of a multiplexer for
    /// one thread posts an item, which keeps `self` alive until it has been taken.
    void cancel_all(std::shared_ptr<asio_core_base> self) noexcept {
        io_multiplexer& multiplexer = context.multiplexer();
        constexpr long owners_when_idle = 2;  // the object, and `self`
        if (self.use_count() == owners_when_idle) return;
        if (is_shared or multiplexer.is_owner()) {
            cancel_pending();
            return;
        }
        // acquire: pairs with the release in invoke(), which has emptied `kept_`.
        if (cancel_posted_.exchange(true, std::memory_order_acquire)) return;
        kept_ = std::move(self);
        context.begin_outstanding();
        multiplexer.post(*this);
    }
    /// Called on the multiplexer's thread; with several threads on any.
    void cancel_pending() noexcept {
        const guard in(*this);
        for (asio_pending& each : pending)
            each.cancel();
    }

    /// Cancels the oldest operation that has not been cancelled. The same threads.
    void cancel_oldest() noexcept {
        const guard in(*this);
        for (asio_pending& each : pending) {
            if (each.is_cancelled()) continue;
            each.cancel();
            return;
        }
    }

    /// Cancels one, if it is still pending. For several threads.
    void cancel_number(std::uint64_t number) noexcept {
        const guard in(*this);
        for (asio_pending& each : pending)
            if (each.number == number) return each.cancel();
    }
    /// Adds an operation. The same threads as above, or before other threads can reach it.
    void add_pending(asio_pending& one) noexcept {
        const guard in(*this);
        if (not one.pending_link.is_linked()) pending.push_back(one);
    }
    void remove_pending(asio_pending& one) noexcept {
        const guard in(*this);
        if (one.pending_link.is_linked()) pending.erase(one);
    }
    [[nodiscard]] std::uint64_t next_number() noexcept {
        const guard in(*this);
        return ++numbers_;
    }

    asio_context& context;
    const bool is_shared;  // several threads may run the context
    list_hook<asio_core_base> enlisted_link;
    bool is_enlisted =
        false;  // for the thread that drops the last reference; the link is its neighbours', too
    list_hook<asio_core_base> unowned_link;
    intrusive_list<asio_pending, &asio_pending::pending_link> pending;

private:
    void invoke() noexcept override {
        const std::shared_ptr<asio_core_base> self = std::move(kept_);
        context.end_outstanding();
        // Pairs with the exchange in cancel_all().
        cancel_posted_.store(false, std::memory_order_release);
        cancel_pending();
    }

    // Of `pending`, `is_enlisted`, and what derived classes guard with it.
    std::recursive_mutex mutex_;
    std::uint64_t numbers_ = 0;
    std::atomic<bool> cancel_posted_{false};
    std::shared_ptr<asio_core_base> kept_;
};

/// Creates a core. A core that has had operations on the loop is destroyed by the loop's thread,
/// others at once.
template <class Core, class... Arguments>
[[nodiscard]] std::shared_ptr<Core> make_asio_core(asio_context& on, Arguments&&... arguments) {
    struct destroyer {
        void operator()(Core* one) const noexcept {
            if (one->is_enlisted) {
                one->context.destroy_core(*one);
            } else {
                delete one;
            }
        }
    };
    return std::shared_ptr<Core>(new Core(on, std::forward<Arguments>(arguments)...), destroyer());
}

template <class Handle>
class asio_core final : public asio_core_base {
public:
    asio_core(asio_context& on, Handle&& from) noexcept : asio_core_base(on), handle(std::move(from)) {}

    /// Attaches the handle to the loop, before the first operation. The multiplexer's thread.
    [[nodiscard]] asio::error_code attach() noexcept {
        const guard in(*this);
        if (handle.multiplexer() != nullptr) return {};
        if (not handle.is_valid()) return {EBADF, asio::error::get_system_category()};
        return asio_outcome(handle.set_multiplexer(&context.multiplexer()));
    }
    /// Detaches the handle from the loop. Returns EBUSY while operations are pending; with several
    /// threads, also while one is on its way to the loop: each holds a reference, in addition to
    /// the caller's.
    [[nodiscard]] asio::error_code detach(const std::shared_ptr<asio_core>& self) noexcept {
        const guard in(*this);
        if (is_shared and self.use_count() != 1) return {EBUSY, asio::error::get_system_category()};
        if (handle.multiplexer() == nullptr) return {};
        return asio_outcome(handle.set_multiplexer(nullptr));
    }

    Handle handle;
};

/// The common part of operations on a handle: the handle is attached to the loop first, and if that
/// fails, or the operation is refused, it ends with the error instead of I/O.
template <class Handle>
class asio_handle_work {
public:
    [[nodiscard]] bool is_nothing() noexcept {
        if (not refused_) refused_ = core_.attach();
        return static_cast<bool>(refused_);
    }

protected:
    explicit asio_handle_work(asio_core<Handle>& core, asio::error_code refused = {}) noexcept
        : core_(core), refused_(refused) {}
    [[nodiscard]] Handle& handle() const noexcept { return core_.handle; }
    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return core_.context.multiplexer(); }
    [[nodiscard]] const asio::error_code& refused() const noexcept { return refused_; }
    /// Makes the work end with an error. Returns true.
    bool refuse(const asio::error_code& why) noexcept {
        refused_ = why;
        return true;
    }

private:
    asio_core<Handle>& core_;
    asio::error_code refused_;
};

}  // namespace sluice::io::detail
