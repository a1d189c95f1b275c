#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "sluice/base/result.hpp"

namespace sluice::cli {

/// Bounds the duration of a stop: a thread that calls `expired` if the program has not ended 8
/// seconds after begin(). A file system that does not respond never completes its calls, and the
/// objects they use cannot be destroyed.
///
/// Thread safety: any thread. After destruction it does not expire.
class stop_deadline {
public:
    /// Errors: EAGAIN if no thread can be started. Allocates: yes.
    [[nodiscard]] static result<std::unique_ptr<stop_deadline>> start(std::function<void()> expired);
    stop_deadline(const stop_deadline&) = delete;
    stop_deadline& operator=(const stop_deadline&) = delete;
    ~stop_deadline();

    /// Starts the time limit. Further calls have no effect.
    void begin() noexcept;

private:
    explicit stop_deadline(std::function<void()> expired) noexcept : expired_(std::move(expired)) {}
    void watch();

    std::function<void()> expired_;
    std::mutex mutex_;  // guards what follows
    std::condition_variable has_news_;
    bool has_begun_ = false;
    bool has_ended_ = false;
    std::thread runner_;
};

}  // namespace sluice::cli
