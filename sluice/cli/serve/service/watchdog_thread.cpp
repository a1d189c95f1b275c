#include "sluice/cli/serve/service/watchdog_thread.hpp"

#include <system_error>

#include "sluice/smb/server/core/limits.hpp"

namespace sluice::cli {

result<std::unique_ptr<watchdog_thread>> watchdog_thread::start(smb::server::loop_watchdog& watchdog,
                                                                std::function<void()> checked) {
    std::unique_ptr<watchdog_thread> started(new watchdog_thread(watchdog, std::move(checked)));
    try {
        started->runner_ = std::thread([&thread = *started] { thread.watch(); });
    } catch (const std::system_error& why) {
        return failure({why.code().value(), "start a thread"});
    }
    return started;
}

watchdog_thread::~watchdog_thread() {
    {
        const std::lock_guard holding(mutex_);
        has_ended_ = true;
    }
    ends_.notify_one();
    if (runner_.joinable()) runner_.join();
}

void watchdog_thread::watch() {
    std::unique_lock holding(mutex_);
    while (
        not ends_.wait_for(holding, smb::server::limits::loop_sample_period, [this] { return has_ended_; })) {
        watchdog_.check();
        checked_();
    }
}

}  // namespace sluice::cli
