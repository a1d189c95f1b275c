#pragma once

#include <asio/any_io_executor.hpp>

#include "sluice/io/asio/signal_core.hpp"
#include "sluice/io/asio/socket_object.hpp"

namespace sluice::io {

namespace detail {

/// Waits for a signal of a set.
class asio_signal_sender {
public:
    using result_type = result<int>;

    explicit asio_signal_sender(asio_signal_core& from) noexcept : core_(&from) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return core_->context.multiplexer(); }
    void configure(operation& configured) noexcept {
        configure_external(configured, multiplexer(), waiter_.emplace(*core_), {});
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        if (const int code = code_of(completed); code != 0) return failure({code, "wait for a signal"});
        return (*waiter_).number();
    }

private:
    asio_signal_core* core_;
    work_room<asio_signal_waiter> waiter_;
};

class asio_signal_wait {
public:
    asio_signal_wait(asio_signal_core& core, std::nullptr_t) noexcept : core_(core) {}
    [[nodiscard]] auto sender() noexcept { return asio_signal_sender(core_); }
    [[nodiscard]] static auto finish(result<int>&& outcome) noexcept {
        if (not outcome) return std::tuple(asio_error(outcome.error()), 0);
        return std::tuple(asio::error_code(), *outcome);
    }

private:
    asio_signal_core& core_;
};

}  // namespace detail

namespace asio_names {

/// Asio's signal_set on our signal_receiver, which uses signalfd(2), not handlers. Several sets may
/// contain one signal; each gets every arrival, and arrivals without a wait are kept, one for each
/// signal.
///
/// A signal in a set is blocked in the thread that adds it, and in the threads that this thread
/// starts from then on. Existing threads must block it themselves, or it may terminate the process:
/// create the sets first. When the last set with a signal is destroyed, the signal is unblocked if
/// the thread that added it destroys the set. A child process inherits the mask. Thread safety,
/// completion and allocation: as asio_stream.
template <class Executor = asio::any_io_executor>
class basic_signal_set {
public:
    using executor_type = Executor;
    template <class Other>
    struct rebind_executor {
        using other = basic_signal_set<Other>;
    };

    explicit basic_signal_set(const executor_type& executor)
        : executor_(executor),
          core_(detail::make_asio_core<detail::asio_signal_core>(detail::asio_context_of(executor_))) {}
    template <std::same_as<int>... Numbers>
    basic_signal_set(const executor_type& executor, int first, Numbers... more) : basic_signal_set(executor) {
        add(first);
        (add(more), ...);
    }
    template <asio_execution_context Context, std::same_as<int>... Numbers>
    explicit basic_signal_set(Context& context, Numbers... numbers)
        : basic_signal_set(executor_type(context.get_executor())) {
        (add(numbers), ...);
    }
    basic_signal_set(const basic_signal_set&) = delete;
    basic_signal_set& operator=(const basic_signal_set&) = delete;
    ~basic_signal_set() { cancel(); }

    [[nodiscard]] const executor_type& get_executor() const noexcept { return executor_; }

    /// Errors: EINVAL for a signal that cannot be received; EMFILE and similar errors.
    void add(int number, asio::error_code& why) {
        auto receiver = detail::asio_signal_registry::instance().acquire(number);
        why = receiver.has_value() ? asio::error_code() : detail::asio_error(receiver.error());
        if (why) return;
        core_->context.act([core = core_, number, forks = core_->forks(),
                            receiver = std::move(*receiver)]() mutable noexcept {
            core->add(number, std::move(receiver), forks);
        });
    }
    void add(int number) {
        asio::error_code why;
        add(number, why);
        detail::asio_throw_if(why, "add");
    }
    /// Removes a signal, or all, and their arrivals. Waits stay.
    void remove(int number) {
        core_->context.act([core = core_, number]() noexcept { core->remove(number); });
    }
    void remove(int number, asio::error_code& why) {
        why.clear();
        remove(number);
    }
    void clear() { remove(detail::asio_signal_core::each_signal); }
    void clear(asio::error_code& why) {
        why.clear();
        clear();
    }
    void cancel() noexcept { core_->cancel_all(core_); }
    void cancel(asio::error_code& why) noexcept {
        why.clear();
        cancel();
    }

    /// void(asio::error_code, int): the number of a signal that has arrived.
    template <class Token = asio::default_completion_token_t<executor_type>>
    auto async_wait(Token&& token = Token()) {
        return detail::asio_initiate<void(asio::error_code, int), detail::asio_signal_wait>(core_, executor_,
                                                                                            token, nullptr);
    }

private:
    executor_type executor_;
    std::shared_ptr<detail::asio_signal_core> core_;
};

}  // namespace asio_names
}  // namespace sluice::io
