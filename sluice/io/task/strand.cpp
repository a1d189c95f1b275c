#include "sluice/io/task/strand.hpp"

namespace sluice::io {

void strand::post(posted_item& item) noexcept {
    const bool is_first = posted_.add();
    (void)items_.push(item);
    if (is_first) multiplexer_.post(*this);
}

void strand::invoke() noexcept {
    // Limits one run, so that a strand that is always busy leaves its thread to others.
    constexpr std::size_t items_per_run_max = 64;
    const strand* const around = std::exchange(running_, this);
    ENSURE(around != this, "items of a strand take turns");
    const std::size_t most = posted_.at_most(items_per_run_max);
    std::size_t count = 0;
    while (count < most) {
        posted_item* const item = items_.pop();
        if (item == nullptr) break;  // the push of the next one has not finished
        ++count;
        item->invoke();
    }
    running_ = around;
    if (posted_.remove(count)) multiplexer_.post(*this);
}

}  // namespace sluice::io
