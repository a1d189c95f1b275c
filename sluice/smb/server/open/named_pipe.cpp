#include "sluice/smb/server/open/named_pipe.hpp"

#include "sluice/smb/server/core/switch_point.hpp"

namespace sluice::smb::server {

bool named_pipe::write(bytes_view request) noexcept {
    std::size_t unread_bytes = 0;
    {
        const lock_guard held(mutex_);
        if (is_broken_) return false;
        unread_bytes = answer_bytes();
    }
    const bool is_valid = process(request, unread_bytes);
    bool is_taken = false;
    {
        event_wakes<wire::nt_status> woken;
        const lock_guard held(mutex_);
        is_taken = finish(is_valid);
        wake(woken);
    }
    switch_point::mark();  // a reader on another loop may get the answer before this returns
    return is_taken;
}

bool named_pipe::finish(bool is_valid) noexcept {
    const bool is_published = publish(is_valid);
    ENSURE(is_published ? is_valid : answer_bytes() == 0, "a pipe that is broken has no answers");
    if (not is_published) is_broken_ = true;
    return is_published;
}

named_pipe::read_outcome named_pipe::read(mutable_bytes into) noexcept {
    const lock_guard held(mutex_);
    return read_held(into);
}

named_pipe::read_outcome named_pipe::read_held(mutable_bytes into) noexcept {
    const read_outcome got = read_answer(into);
    ENSURE(got.bytes <= into.size(), "a pipe moves no more than there is room for");
    return got;
}

named_pipe::transceive_outcome named_pipe::transceive(bytes_view request, mutable_bytes into) noexcept {
    {
        const lock_guard held(mutex_);
        if (is_broken_) return {.status = wire::nt_status::pipe_disconnected};
        if (answer_bytes() != 0) return {.status = wire::nt_status::pipe_busy};
    }
    const bool is_valid = process(request, 0);
    event_wakes<wire::nt_status> woken;
    const lock_guard held(mutex_);
    if (not finish(is_valid)) {
        wake(woken);
        return {.status = wire::nt_status::pipe_disconnected};
    }
    if (answer_bytes() == 0) return {.status = wire::nt_status::invalid_pipe_state};
    const read_outcome got = read_held(into);
    wake(woken);  // for what is left
    return {.status = got.more ? wire::nt_status::buffer_overflow : wire::nt_status::success,
            .bytes = got.bytes};
}

std::size_t named_pipe::readable_bytes() const noexcept {
    const lock_guard held(mutex_);
    return answer_bytes();
}

void named_pipe::wait(one_shot_event<wire::nt_status>& answered) {
    event_wakes<wire::nt_status> woken;
    const lock_guard held(mutex_);
    waiting_.push_back(&answered);
    wake(woken);
}

void named_pipe::forget(one_shot_event<wire::nt_status>& answered) noexcept {
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
    for (one_shot_event<wire::nt_status>* const one : waiting_)
        woken.set(*one, *with);
}

}  // namespace sluice::smb::server
