#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "sluice/base/result.hpp"
#include "sluice/smb/server/report/loop_watchdog.hpp"

namespace sluice::cli {

/// The thread that runs a watchdog, from construction to destruction. It has no other task, so it
/// runs even if every loop is stuck.
class watchdog_thread {
public:
    /// `watchdog` outlives the thread, which calls `checked` after each check of it.
    /// Errors: EAGAIN if no thread can be started. Allocates: yes.
    [[nodiscard]] static result<std::unique_ptr<watchdog_thread>> start(smb::server::loop_watchdog& watchdog,
                                                                        std::function<void()> checked);
    watchdog_thread(const watchdog_thread&) = delete;
    watchdog_thread& operator=(const watchdog_thread&) = delete;
    ~watchdog_thread();

private:
    watchdog_thread(smb::server::loop_watchdog& watchdog, std::function<void()> checked) noexcept
        : watchdog_(watchdog), checked_(std::move(checked)) {}
    void watch();

    smb::server::loop_watchdog& watchdog_;
    std::function<void()> checked_;
    std::mutex mutex_;
    std::condition_variable ends_;
    bool has_ended_ = false;
    std::thread runner_;
};

}  // namespace sluice::cli
