#include "sluice/io/strand.hpp"

#include <algorithm>

namespace sluice::io {

void strand::post(posted_item& item) noexcept {
    // Counted before it is pushed: were it popped before it is counted, a run would count it off first, and
    // two threads would find the strand idle. acq_rel: pairs with invoke(): what the items before have
    // written.
    const bool was_idle = posted_.fetch_add(1, std::memory_order_acq_rel) == 0;
    (void)items_.push(item);
    if (was_idle) multiplexer_.post(*this);
}

void strand::invoke() noexcept {
    // A part of them, so that a strand that is always busy leaves its thread to others.
    constexpr std::size_t items_per_run_max = 64;
    const strand* const around = std::exchange(running_, this);
    // acquire: pairs with post().
    const std::size_t most = std::min(posted_.load(std::memory_order_acquire), items_per_run_max);
    std::size_t count = 0;
    while (count < most) {
        posted_item* const item = items_.pop();
        if (item == nullptr) break;  // the push of the next one has not finished
        ++count;
        item->invoke();
    }
    running_ = around;
    // release: what the items have written, for the thread that runs the next. acquire: as above.
    if (posted_.fetch_sub(count, std::memory_order_acq_rel) != count) multiplexer_.post(*this);
}

}  // namespace sluice::io
