#include "sluice/smb/server/open/named_pipe.hpp"

namespace sluice::smb::server {

bool named_pipe::write(bytes_view request) noexcept {
    const bool taken = take(request);
    if (not taken)
        wake(wire::nt_status::pipe_broken);
    else if (has_answer())
        wake(wire::nt_status::success);
    return taken;
}

void named_pipe::wait(event<wire::nt_status>& answered) {
    waiting_.push_back(&answered);
}

void named_pipe::forget(event<wire::nt_status>& answered) noexcept {
    std::erase(waiting_, &answered);
}

void named_pipe::wake(wire::nt_status with) noexcept {
    for (event<wire::nt_status>* const one : waiting_)
        one->set(with);
}

}  // namespace sluice::smb::server
