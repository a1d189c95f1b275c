#include "sluice/smb/server/open/named_pipe.hpp"

namespace sluice::smb::server {

bool named_pipe::write(bytes_view request) noexcept {
    event_wakes<wire::nt_status> woken;
    const lock_guard held(mutex_);
    const bool is_taken = take(request);
    if (not is_taken) is_broken_ = true;
    wake(woken);
    return is_taken;
}

named_pipe::read_outcome named_pipe::read(mutable_bytes into) noexcept {
    const lock_guard held(mutex_);
    const read_outcome got = read_answer(into);
    ENSURE(got.bytes <= into.size(), "a pipe moves no more than there is room for");
    return got;
}

std::size_t named_pipe::readable_bytes() const noexcept {
    const lock_guard held(mutex_);
    return answer_bytes();
}

void named_pipe::wait(event<wire::nt_status>& answered) {
    event_wakes<wire::nt_status> woken;
    const lock_guard held(mutex_);
    waiting_.push_back(&answered);
    wake(woken);
}

void named_pipe::forget(event<wire::nt_status>& answered) noexcept {
    const lock_guard held(mutex_);
    ENSURE(std::erase(waiting_, &answered) <= 1, "a reader waits once");
}

void named_pipe::end() noexcept {
    event_wakes<wire::nt_status> woken;
    const lock_guard held(mutex_);
    is_broken_ = true;
    wake(woken);
}

std::optional<wire::nt_status> named_pipe::outcome() const noexcept {
    if (is_broken_) return wire::nt_status::pipe_broken;
    return answer_bytes() != 0 ? std::optional(wire::nt_status::success) : std::nullopt;
}

void named_pipe::wake(event_wakes<wire::nt_status>& woken) noexcept {
    const std::optional<wire::nt_status> with = outcome();
    if (not with) return;
    for (event<wire::nt_status>* const one : waiting_)
        woken.set(*one, *with);
}

}  // namespace sluice::smb::server
