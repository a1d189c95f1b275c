#include "sluice/smb/server/net/pipe_queue.hpp"

namespace sluice::smb::server {

using wire::nt_status;

pipe_queue::place::place(pipe_queue& in, const client_reference& by, one_shot_event<nt_status>& granted)
    : in_(in), by_(by), set_when_granted_(granted) {
    ENSURE(by_, "a client that uses a pipe has logged on");
    if (in_.granted_ == nullptr)
        in_.granted_ = this;
    else
        in_.add(*this);
}

pipe_queue::place::~place() {
    if (not is_granted()) {
        in_.remove(*this);
        return;
    }
    in_.granted_ = nullptr;
    in_.grant_next();
}

void pipe_queue::add(place& fresh) {
    client& of = clients_[&fresh.by_.name()];
    if (of.places.empty()) {
        of.name = &fresh.by_.name();
        turns_.push_back(of);
    }
    of.places.push_back(fresh);
    ENSURE(of.link.is_linked(), "a client with a place that waits has a turn");
}

void pipe_queue::remove(place& waiting) noexcept {
    const auto found = clients_.find(&waiting.by_.name());
    ENSURE(found != clients_.end(), "a place that waits belongs to a client with a turn");
    found->second.places.erase(waiting);
    if (not found->second.places.empty()) return;
    turns_.erase(found->second);
    clients_.erase(found);
}

void pipe_queue::grant_next() noexcept {
    ENSURE(granted_ == nullptr, "one place is granted at a time");
    client* const of = turns_.pop_front();
    if (of == nullptr) return;
    granted_ = of->places.pop_front();
    ENSURE(granted_ != nullptr, "a client with a turn has a place that waits");
    if (of->places.empty())
        clients_.erase(of->name);
    else
        turns_.push_back(*of);
    granted_->set_when_granted_.set(nt_status::success);
}

}  // namespace sluice::smb::server
