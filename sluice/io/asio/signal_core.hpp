#pragma once

#include <asio/execution_context.hpp>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sluice/base/intrusive_list.hpp"
#include "sluice/io/asio/core.hpp"
#include "sluice/io/asio/signal_registry.hpp"
#include "sluice/io/loop/external_work.hpp"

// The waits of a set of signals; for signal_set.hpp, not for users.
namespace sluice::io::detail {

class asio_signal_core;

/// The sets of a context that a fork(2) affects. Thread safety: any thread.
class asio_signal_service final : public asio::execution_context::service {
public:
    explicit asio_signal_service(asio::execution_context& on) : asio::execution_context::service(on) {}

    inline static asio::execution_context::id id;
    void add(asio_signal_core& one) {
        const std::scoped_lock lock(mutex_);
        cores_.push_back(&one);
    }
    void remove(asio_signal_core& one) noexcept {
        const std::scoped_lock lock(mutex_);
        std::erase(cores_, &one);
    }

private:
    void shutdown() noexcept override {}
    void notify_fork(asio::execution_context::fork_event event) override;

    std::mutex mutex_;
    std::vector<asio_signal_core*> cores_;
};

/// One wait for any signal of a set.
class asio_signal_waiter final : public external_work {
public:
    explicit asio_signal_waiter(asio_signal_core& of) noexcept : core_(of) {}

    /// Passes it a signal.
    void receive(int number) noexcept {
        number_ = number;
        complete(0);
    }
    [[nodiscard]] int number() const noexcept { return number_; }

    list_hook<asio_signal_waiter> link;

private:
    [[nodiscard]] std::optional<int> begin(bool may_wait) noexcept override;
    void end() noexcept override;

    asio_signal_core& core_;
    int number_ = 0;
};

/// The signals of a set, their arrivals, and the waiting operations. While one waits, an operation
/// is pending for each signal. The multiplexer's thread; several threads are serialised by the
/// core's lock.
///
/// Invariant: a waiter is in the list only while no arrival is unused.
class asio_signal_core final : public asio_core_base, public std::enable_shared_from_this<asio_signal_core> {
public:
    explicit asio_signal_core(asio_context& on)
        : asio_core_base(on), service_(asio::use_service<asio_signal_service>(on)) {
        service_.add(*this);
    }
    ~asio_signal_core() override { service_.remove(*this); }

    /// Returns how many forks lie between the process in which the core was created and this one.
    [[nodiscard]] unsigned forks() const noexcept { return forks_.load(std::memory_order_relaxed); }

    /// Adds a receiver that the registry has created after `forks_before` forks; destroys it if the
    /// set has the signal already.
    void add(int number, signal_receiver&& from, unsigned forks_before) {
        // Created in the parent, and not yet added at the fork. A receiver whose renewal fails
        // receives the parent's signals.
        if (forks_before != forks()) (void)from.renew_in_child();
        const guard in(*this);
        for (const source& each : signals_) {
            if (each.number == number and not each.is_removed) {
                asio_signal_registry::instance().release(number);
                return;
            }
        }
        signals_.emplace_back(*this, number, std::move(from));
        if (not waiters_.empty()) listen_once();
    }
    void remove(int number) noexcept {
        const guard in(*this);
        for (source& each : signals_) {
            if (number == each_signal or each.number == number) each.is_removed = true;
        }
        std::erase_if(arrived_, [&](int one) { return number == each_signal or one == number; });
        end_unwanted();
    }
    static constexpr int each_signal = 0;

    /// In a child after a fork. Throws: asio::system_error.
    void renew_in_child() {
        // No other thread uses the context during a fork.
        forks_.fetch_add(1, std::memory_order_relaxed);
        for (source& each : signals_)
            asio_throw_if(asio_outcome(each.receiver.renew_in_child()), "notify_fork");
    }

private:
    friend class asio_signal_waiter;

    struct source;
    struct relay {
        source* self;
        void set_value(result<signal_event>&& outcome) noexcept {
            const guard in(self->core);
            if (outcome.has_value()) self->core.arrived_.push_back(outcome->number);
        }
        void set_done() noexcept { self->core.ended(*self); }
    };
    // One signal.
    struct source {
        source(asio_signal_core& of, int what, signal_receiver&& from) noexcept
            : core(of), number(what), receiver(std::move(from)) {}
        source(const source&) = delete;
        source& operator=(const source&) = delete;
        ~source() { asio_signal_registry::instance().release(number); }

        asio_signal_core& core;
        const int number;
        bool is_removed = false;
        signal_receiver receiver;
        std::shared_ptr<asio_signal_core> kept;  // while an operation is pending
        std::optional<io_operation_connection<signal_sender, relay>> operation;
    };

    void listen() noexcept {
        for (source& each : signals_) {
            if (each.kept != nullptr or each.is_removed) continue;
            if (each.receiver.multiplexer() == nullptr and
                not each.receiver.set_multiplexer(&context.multiplexer()).has_value()) {
                // Out of descriptors or memory: the others are received, and this by the next wait.
                continue;
            }
            each.kept = shared_from_this();
            context.enlist(*this);
            context.begin_outstanding();
            each.operation.emplace(async_wait_signal(each.receiver), relay{&each});
            each.operation->start();  // which may end it
        }
    }
    void ended(source& one) noexcept {
        std::shared_ptr<asio_signal_core> self;  // released after the lock
        const guard in(*this);
        self = std::move(one.kept);
        context.end_outstanding();
        while (not arrived_.empty() and not waiters_.empty()) {
            const int number = arrived_.front();
            arrived_.erase(arrived_.begin());
            waiters_.pop_front()->receive(number);
        }
        if (is_listening_) return;  // it is the operation that listen() just started
        end_unwanted();
        if (not waiters_.empty()) listen_once();
    }
    void listen_once() noexcept {
        is_listening_ = true;
        listen();
        is_listening_ = false;
        end_unwanted();
    }
    // Removed signals are freed when no operation is pending on them; without a waiter none needs
    // to be pending.
    void end_unwanted() noexcept {
        for (source& each : signals_) {
            if (each.kept != nullptr and (each.is_removed or waiters_.empty())) each.operation->cancel();
        }
        signals_.remove_if([](const source& each) { return each.is_removed and each.kept == nullptr; });
    }
    [[nodiscard]] std::optional<int> take_arrived() noexcept {
        if (arrived_.empty()) return std::nullopt;
        const int number = arrived_.front();
        arrived_.erase(arrived_.begin());
        return number;
    }

    asio_signal_service& service_;
    std::atomic<unsigned> forks_{0};
    std::list<source> signals_;
    std::vector<int> arrived_;  // the oldest first; at most one more for each signal and wait
    intrusive_list<asio_signal_waiter, &asio_signal_waiter::link> waiters_;
    bool is_listening_ = false;
};

inline void asio_signal_service::notify_fork(asio::execution_context::fork_event event) {
    if (event != asio::execution_context::fork_child) return;
    const std::scoped_lock lock(mutex_);
    for (asio_signal_core* const each : cores_)
        each->renew_in_child();
}

inline std::optional<int> asio_signal_waiter::begin(bool may_wait) noexcept {
    const asio_core_base::guard in(core_);
    if (const auto arrived = core_.take_arrived()) {
        number_ = *arrived;
        return 0;
    }
    if (not may_wait) return ETIMEDOUT;
    core_.waiters_.push_back(*this);
    core_.listen_once();
    return std::nullopt;
}

inline void asio_signal_waiter::end() noexcept {
    const asio_core_base::guard in(core_);
    if (not link.is_linked()) return;  // it has received one
    core_.waiters_.erase(*this);
    core_.end_unwanted();
    complete(ECANCELED);
}

}  // namespace sluice::io::detail
