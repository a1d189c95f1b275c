#pragma once

#include <cerrno>
#include <mutex>

#include "tests/interleave/scheduler.hpp"

namespace sluice::interleave {

/// A mutex. Acquiring it, and waiting for it, are steps.
class simulated_lock {
public:
    void lock() noexcept {
        step();
        while (is_held_)
            sleep_on(this, false);
        is_held_ = true;
    }
    void unlock() noexcept {
        is_held_ = false;
        record_change();
        wake_one_on(this);
    }

private:
    bool is_held_ = false;
};

/// One operation of a multiplexer for several threads, reduced to its state, and the lock of the
/// multiplexer: start_or_finish(), publish(), cancel() and the loop.
class simulated_engine {
public:
    /// `completes`: the kernel completes the operation; otherwise only a cancellation ends it.
    explicit simulated_engine(bool completes) noexcept : completes_(completes) {}

    /// start_or_finish(): from now on other threads find the operation, but none completes it.
    void begin() noexcept {
        const std::scoped_lock inside(lock_);
        at_ = stage::begun;
    }
    /// publish(): it may complete now. `checks`: whether to check if it was cancelled in the
    /// meantime.
    void publish(bool checks = true) noexcept {
        const std::scoped_lock inside(lock_);
        at_ = stage::waiting;
        if (is_cancelled_ and checks) finish(ECANCELED);
        wake_loop();
    }
    void cancel() noexcept {
        const std::scoped_lock inside(lock_);
        if (at_ == stage::begun) is_cancelled_ = true;
        if (at_ == stage::waiting) finish(ECANCELED);
        wake_loop();
    }
    /// The loop, until it has removed the operation to send its signals. Returns its outcome.
    int run() noexcept {
        lock_.lock();
        while (at_ != stage::ready) {
            if (at_ == stage::waiting and completes_) {
                finish(0);
                break;
            }
            lock_.unlock();
            sleep_on(&at_, false);
            lock_.lock();
        }
        at_ = stage::done;
        lock_.unlock();
        return code_;
    }

private:
    enum class stage : unsigned char { idle, begun, waiting, ready, done };

    void finish(int code) noexcept {
        at_ = stage::ready;
        code_ = code;
    }
    void wake_loop() noexcept {
        record_change();
        wake_one_on(&at_);
    }

    simulated_lock lock_;
    stage at_ = stage::idle;
    bool completes_;
    bool is_cancelled_ = false;
    int code_ = 0;
};

/// A coroutine that waits until another thread resumes it.
class simulated_coroutine {
public:
    void suspend() noexcept {
        is_suspended_ = true;
        record_change();
    }
    /// Waits until it is resumed.
    void wait() noexcept {
        while (resumptions_ == 0)
            sleep_on(&resumptions_, false);
    }
    void resume() noexcept {
        if (not is_suspended_) was_early_ = true;
        ++resumptions_;
        record_change();
        wake_one_on(&resumptions_);
    }
    [[nodiscard]] int resumptions() const noexcept { return resumptions_; }
    [[nodiscard]] bool was_early() const noexcept { return was_early_; }

private:
    bool is_suspended_ = false;
    bool was_early_ = false;
    int resumptions_ = 0;
};

}  // namespace sluice::interleave
