#include "sluice/smb/server/open/named_pipe.hpp"

#include "sluice/smb/server/core/switch_point.hpp"

namespace sluice::smb::server {

namespace {

void do_all(std::vector<pipe_work>& work) noexcept {
    for (pipe_work& one : work) {
        ENSURE(one != nullptr, "work that a request has asked for can be done");
        one();
    }
}

}  // namespace

bool named_pipe::write(bytes_view request) noexcept {
    bool is_taken = false;
    std::vector<pipe_work> work;
    {
        event_wakes<wire::nt_status> woken;
        const lock_guard held(mutex_);
        is_taken = process(request);
        work = take_work();
        wake(woken);
    }
    do_all(work);
    switch_point::mark();  // a reader on another loop may get the answer before this returns
    return is_taken;
}

bool named_pipe::process(bytes_view request) noexcept {
    const bool is_taken = take(request);
    if (not is_taken) is_broken_ = true;
    return is_taken;
}

named_pipe::read_outcome named_pipe::read(mutable_bytes into) noexcept {
    const lock_guard held(mutex_);
    const read_outcome got = read_answer(into);
    ENSURE(got.bytes <= into.size(), "a pipe moves no more than there is room for");
    return got;
}

named_pipe::transceive_outcome named_pipe::transceive(bytes_view request, mutable_bytes into) noexcept {
    transceive_outcome outcome;
    std::vector<pipe_work> work;
    {
        event_wakes<wire::nt_status> woken;
        const lock_guard held(mutex_);
        outcome = transceive_held(request, into, woken);
        work = take_work();
    }
    do_all(work);
    return outcome;
}

named_pipe::transceive_outcome named_pipe::transceive_held(bytes_view request, mutable_bytes into,
                                                           event_wakes<wire::nt_status>& woken) noexcept {
    if (answer_bytes() != 0) return {.status = wire::nt_status::pipe_busy};
    if (not process(request)) {
        wake(woken);
        return {.status = wire::nt_status::pipe_disconnected};
    }
    if (answer_bytes() == 0) return {.status = wire::nt_status::invalid_pipe_state};
    const read_outcome got = read_answer(into);
    ENSURE(got.bytes <= into.size(), "a pipe moves no more than there is room for");
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
