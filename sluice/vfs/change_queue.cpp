#include "sluice/vfs/change_queue.hpp"

#include <utility>

namespace sluice::vfs {

io::task<void> change_feed::run() noexcept {
    for (;;) {
        io::task<bool> waiting = co_changed();
        const bool goes_on = co_await std::move(waiting);
        if (not goes_on) co_return;
        deliver();
    }
}

void change_queue::put(item what) {
    queued_.push_back(std::move(what));
    queued_.back().to->last_item_ = delivered_ + queued_.size();
}

bool change_queue::is_of_making(const queued_watch& to, std::string_view path) const noexcept {
    if (to.last_item_ <= delivered_) return false;  // nothing is queued for it
    const item& last = queued_[to.last_item_ - delivered_ - 1];
    return not last.is_overflow and not last.is_end and not last.is_move and
           last.what == change_kind::added and last.path == path;
}

void change_queue::add(queued_watch& to, change_kind what, bool is_directory, std::string path) {
    if (to.listener().needs_no_changes()) return;
    if (what == change_kind::attributes and is_of_making(to, path)) return;
    put({.to = &to, .what = what, .is_directory = is_directory, .path = std::move(path)});
}

void change_queue::forget(const queued_watch& gone) noexcept {
    for (item& each : queued_)
        if (each.to == &gone) each.to = nullptr;
}

void change_queue::deliver_all() noexcept {
    while (not queued_.empty()) {
        const item next = std::move(queued_.front());
        queued_.pop_front();
        ++delivered_;
        if (next.to == nullptr) continue;
        change_listener& listener = next.to->listener();
        if (next.is_end) {
            listener.ended();
        } else if (next.is_overflow) {
            listener.overflowed();
        } else if (next.is_move) {
            listener.moved();
        } else {
            listener.changed({.kind = next.what, .is_directory = next.is_directory, .path = next.path});
        }
    }
}

}  // namespace sluice::vfs
