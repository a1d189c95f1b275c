#include "sluice/smb/server/net/credit_window.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::smb::server {

bool credit_window::use(std::uint64_t message_id, std::uint16_t charge) noexcept {
    const std::uint64_t ids = std::max<std::uint64_t>(charge, 1);
    if (message_id < first_ or message_id >= end_ or ids > end_ - message_id) return false;
    for (std::uint64_t id = message_id; id != message_id + ids; ++id)
        if (used_[id % capacity]) return false;
    for (std::uint64_t id = message_id; id != message_id + ids; ++id)
        used_.set(id % capacity);
    outstanding_.set(outstanding() - ids);
    while (first_ != end_ and used_[first_ % capacity]) {
        used_.reset(first_ % capacity);
        ++first_;
    }
    ENSURE(outstanding() <= end_ - first_, "the credits that are not used are in the window");
    return true;
}

std::uint16_t credit_window::grant(std::uint16_t asked, std::uint16_t outstanding_max) noexcept {
    // A client that asks for no credits keeps its present ones; without any it could never send
    // again.
    const std::uint64_t wanted = std::max<std::uint64_t>(asked, outstanding() == 0 ? 1 : 0);
    const std::uint64_t allowed = outstanding_max > outstanding() ? outstanding_max - outstanding() : 0;
    ENSURE(end_ - first_ <= capacity, "the window has a bit for each id");
    const std::uint64_t room = capacity - (end_ - first_);
    const std::uint64_t granted = std::min({wanted, allowed, room});
    end_ += granted;
    outstanding_.set(outstanding() + granted);
    ENSURE(outstanding() <= end_ - first_, "the credits that are not used are in the window");
    ENSURE(granted == 0 or outstanding() <= outstanding_max, "no more is granted than the bound");
    return static_cast<std::uint16_t>(granted);
}

}  // namespace sluice::smb::server
