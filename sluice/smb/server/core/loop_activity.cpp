#include "sluice/smb/server/core/loop_activity.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

loop_activity::use::use(loop_activity& of, int thread) noexcept : of_(of) {
    ENSURE(here_ == nullptr, "a thread runs one loop");
    ENSURE(of_.calls_.load(std::memory_order_relaxed) == nullptr, "a loop has one use at a time");
    here_ = &of_;
    of_.thread_.store(thread, std::memory_order_relaxed);
    of_.calls_.store(&vfs::inline_call_slot::of_this_thread(),
                     std::memory_order_release);  // pairs with call()
}

loop_activity::use::~use() {
    ENSURE(here_ == &of_, "a use ends on the thread that began it");
    of_.calls_.store(nullptr, std::memory_order_release);  // pairs with call()
    of_.thread_.store(0, std::memory_order_relaxed);
    here_ = nullptr;
}

loop_activity::view loop_activity::look() const noexcept {
    return {.turn = turn_.load(std::memory_order_relaxed),
            .work = unpacked(work_.load(std::memory_order_relaxed))};
}

}  // namespace sluice::smb::server
