#include "sluice/vfs/change_queue.hpp"

#include <utility>

namespace sluice::vfs {

void change_queue::forget(const queued_watch& gone) noexcept {
    for (item& each : told_next_)
        if (each.to == &gone) each.to = nullptr;
}

void change_queue::tell_all() noexcept {
    while (not told_next_.empty()) {
        const item next = std::move(told_next_.front());
        told_next_.pop_front();
        if (next.to == nullptr) continue;
        change_listener& listener = next.to->listener();
        if (next.is_end) {
            listener.ended();
        } else if (next.is_overflow) {
            listener.overflowed();
        } else {
            listener.changed({.kind = next.what, .is_directory = next.is_directory, .path = next.path});
        }
    }
}

}  // namespace sluice::vfs
