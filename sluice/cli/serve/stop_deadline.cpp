#include "sluice/cli/serve/stop_deadline.hpp"

#include <chrono>
#include <memory>
#include <system_error>

namespace sluice::cli {

namespace {

// Less than the ten seconds after which service managers and administrators kill the process.
constexpr std::chrono::seconds stop_max{8};

}  // namespace

result<std::unique_ptr<stop_deadline>> stop_deadline::start(std::function<void()> expired) {
    std::unique_ptr<stop_deadline> started(new stop_deadline(std::move(expired)));
    try {
        started->runner_ = std::thread([&deadline = *started] { deadline.watch(); });
    } catch (const std::system_error& why) {
        return failure({why.code().value(), "start a thread"});
    }
    return started;
}

stop_deadline::~stop_deadline() {
    {
        const std::lock_guard holding(mutex_);
        has_ended_ = true;
    }
    has_news_.notify_one();
    if (runner_.joinable()) runner_.join();
}

void stop_deadline::begin() noexcept {
    {
        const std::lock_guard holding(mutex_);
        has_begun_ = true;
    }
    has_news_.notify_one();
}

void stop_deadline::watch() {
    std::unique_lock holding(mutex_);
    has_news_.wait(holding, [this] { return has_begun_ or has_ended_; });
    const bool ended = has_news_.wait_for(holding, stop_max, [this] { return has_ended_; });
    if (not ended) expired_();
}

}  // namespace sluice::cli
