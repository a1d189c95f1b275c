#pragma once

#include <atomic>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

namespace execution_model {

struct never_stop_token {
    template <class>
    struct callback_type {
        template <class F>
        constexpr callback_type(never_stop_token, F&&) noexcept {}
    };
    [[nodiscard]] static constexpr bool stop_requested() noexcept { return false; }
    [[nodiscard]] static constexpr bool stop_possible() noexcept { return false; }
    friend bool operator==(never_stop_token, never_stop_token) = default;
};

/// std::inplace_stop_source, implemented with a mutex and a list.
class inplace_stop_source {
public:
    class token;

    inplace_stop_source() = default;
    inplace_stop_source(const inplace_stop_source&) = delete;

    [[nodiscard]] token get_token() const noexcept;
    [[nodiscard]] bool stop_requested() const noexcept {
        return stopped_.load(std::memory_order_acquire);  // pairs with the release in request_stop
    }

    bool request_stop() noexcept {
        std::unique_lock lock(mutex_);
        if (stopped_.exchange(true, std::memory_order_acq_rel)) return false;
        caller_ = std::this_thread::get_id();
        while (not callbacks_.empty()) {
            running_ = callbacks_.front();
            callbacks_.pop_front();
            lock.unlock();
            running_->call();
            lock.lock();
            running_ = nullptr;
            finished_.store(finished_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
            finished_.notify_all();
        }
        return true;
    }

private:
    struct callback_base {
        virtual void call() noexcept = 0;

    protected:
        ~callback_base() = default;
    };

    // Returns true if the callback has been called, or is being called by request_stop: then it
    // need not be removed.
    bool add(callback_base& callback) {
        std::unique_lock lock(mutex_);
        if (stopped_.load(std::memory_order_relaxed)) return false;
        callbacks_.push_back(&callback);
        return true;
    }
    void remove(callback_base& callback) noexcept {
        std::unique_lock lock(mutex_);
        callbacks_.remove(&callback);
        while (running_ == &callback and caller_ != std::this_thread::get_id()) {
            const unsigned seen = finished_.load(std::memory_order_relaxed);
            lock.unlock();
            finished_.wait(seen, std::memory_order_acquire);  // pairs with request_stop
            lock.lock();
        }
    }

    std::atomic<bool> stopped_{false};
    std::mutex mutex_;
    std::list<callback_base*> callbacks_;
    callback_base* running_ = nullptr;
    std::thread::id caller_;
    std::atomic<unsigned> finished_{0};

    template <class F>
    friend class inplace_stop_callback;
};

template <class F>
class inplace_stop_callback;

class inplace_stop_source::token {
public:
    template <class F>
    using callback_type = inplace_stop_callback<F>;

    [[nodiscard]] bool stop_requested() const noexcept {
        return source_ != nullptr and source_->stop_requested();
    }
    [[nodiscard]] bool stop_possible() const noexcept { return source_ != nullptr; }
    friend bool operator==(token, token) = default;

private:
    friend inplace_stop_source;
    template <class F>
    friend class inplace_stop_callback;
    inplace_stop_source* source_ = nullptr;
};

inline auto inplace_stop_source::get_token() const noexcept -> token {
    token made;
    made.source_ = const_cast<inplace_stop_source*>(this);
    return made;
}

using inplace_stop_token = inplace_stop_source::token;

template <class F>
class inplace_stop_callback final : inplace_stop_source::callback_base {
public:
    inplace_stop_callback(inplace_stop_token token, F f) noexcept : source_(token.source_), f_(std::move(f)) {
        if (source_ != nullptr and not source_->add(*this)) {
            source_ = nullptr;
            f_();
        }
    }
    inplace_stop_callback(const inplace_stop_callback&) = delete;
    ~inplace_stop_callback() {
        if (source_ != nullptr) source_->remove(*this);
    }

private:
    void call() noexcept override { f_(); }

    inplace_stop_source* source_;
    F f_;
};

}  // namespace execution_model
