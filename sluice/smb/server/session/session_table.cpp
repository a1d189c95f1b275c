#include "sluice/smb/server/session/session_table.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

void session_table::add(const std::shared_ptr<session>& fresh) {
    ENSURE(fresh->id == next_id(), "a session is made with the next ID");
    sessions_.emplace(fresh->id, fresh);
    ++last_id_;
}

std::shared_ptr<session> session_table::find(std::uint64_t id) const noexcept {
    const auto found = sessions_.find(id);
    return found == sessions_.end() ? nullptr : found->second;
}

std::vector<session*> session_table::alike(const session& one) const {
    std::vector<session*> alike;
    for (const auto& [id, other] : sessions_) {
        const bool is_alike = other->state == session::phase::valid and
                              other->agreed.client == one.agreed.client and
                              equal_ignoring_case(other->user.name, one.user.name);
        if (is_alike or other.get() == &one) alike.push_back(other.get());
    }
    // IDs are given in order.
    std::ranges::sort(alike, {}, &session::id);
    return alike;
}

}  // namespace sluice::smb::server
