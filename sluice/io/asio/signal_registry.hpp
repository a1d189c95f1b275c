#pragma once

#include <pthread.h>
#include <signal.h>

#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <thread>

#include "sluice/io/stream/signal_receiver.hpp"

// The signals that this process receives through the adapter; for signal_set.hpp, not for users.
namespace sluice::io::detail {

/// One source for each signal, shared by all sets, as signal_source requires. A signal is blocked
/// in the thread that adds it as long as a set contains it. It stays blocked in threads started
/// during that time, and if another thread has the last reference. Thread safety: any thread.
class asio_signal_registry {
public:
    [[nodiscard]] static asio_signal_registry& instance() noexcept;
    constexpr asio_signal_registry() noexcept = default;

    /// Returns a receiver of a signal, until it is released. Errors: as signal_source::create.
    [[nodiscard]] result<signal_receiver> acquire(int number) {
        const io::signal_set one{number};
        if (not one.is_valid()) return failure({EINVAL, "receive a signal: there is none with this number"});
        auto source = use_source(number);
        if (not source) return failure(source.error());
        // Without the lock, because this takes the lock of the receivers, and a fork takes both.
        auto receiver = signal_receiver::create(*source);
        if (not receiver) release(number);
        return receiver;
    }
    void release(int number) noexcept {
        const std::scoped_lock lock(mutex_);
        let_go(number, uses_[static_cast<std::size_t>(number)]);
    }

    /// Around fork(2), so that the child finds the lock free, and the guarded state consistent.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    struct use {
        std::optional<signal_source> source;
        std::size_t sets = 0;
        std::optional<std::thread::id> blocked_by;  // std::nullopt: it was blocked already
    };

    [[nodiscard]] result<signal_source> use_source(int number) {
        const std::scoped_lock lock(mutex_);
        use& asked = uses_[static_cast<std::size_t>(number)];
        const bool was_blocked = block(number);
        if (not asked.source.has_value()) {
            auto source = signal_source::create(io::signal_set{number});
            if (not source) {
                if (not was_blocked) unblock(number);
                return failure(source.error());
            }
            asked = {.source = *source, .sets = 0, .blocked_by = std::nullopt};
            if (not was_blocked) asked.blocked_by = std::this_thread::get_id();
        }
        ++asked.sets;
        return *asked.source;
    }

    void let_go(int number, use& of) noexcept {
        if (--of.sets != 0) return;
        of.source.reset();
        if (of.blocked_by == std::this_thread::get_id()) unblock(number);
    }
    // Returns whether it was blocked already.
    static bool block(int number) noexcept {
        sigset_t before;
        const sigset_t one = set_of(number);
        ::pthread_sigmask(SIG_BLOCK, &one, &before);
        return sigismember(&before, number) == 1;
    }
    static void unblock(int number) noexcept {
        const sigset_t one = set_of(number);
        ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    }
    [[nodiscard]] static sigset_t set_of(int number) noexcept {
        sigset_t made;
        sigemptyset(&made);
        sigaddset(&made, number);
        return made;
    }

    std::mutex mutex_;
    std::array<use, 65> uses_{};  // by number, from 1
};

// Not a static variable of instance(): a child after fork(2) might find its initialisation lock
// held permanently.
inline constinit asio_signal_registry asio_signals_of_process;
inline const bool asio_signals_are_kept =
    ::pthread_atfork([] { asio_signals_of_process.lock(); }, [] { asio_signals_of_process.unlock(); },
                     [] { asio_signals_of_process.unlock(); }) == 0;

inline asio_signal_registry& asio_signal_registry::instance() noexcept {
    return asio_signals_of_process;
}

}  // namespace sluice::io::detail
