#include "sluice/smb/server/session/session_table.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

void session_table::add(const std::shared_ptr<session>& fresh) {
    ENSURE(fresh->id <= last_id_.load(std::memory_order_relaxed), "a session has an ID of the table");
    const lock_guard held(mutex_);
    ENSURE(sessions_.emplace(fresh->id, fresh).second, "an ID is given to one session");
}

std::shared_ptr<session> session_table::find(std::uint64_t id) const noexcept {
    const lock_guard held(mutex_);
    const auto found = sessions_.find(id);
    ENSURE(found == sessions_.end() or found->second->id == id, "a session has the ID that it is found by");
    return found == sessions_.end() ? nullptr : found->second;
}

void session_table::remove(std::uint64_t id) noexcept {
    std::shared_ptr<session> removed;  // perhaps the last to hold it: released without the mutex
    const lock_guard held(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    removed = std::move(found->second);
    ENSURE(removed->id == id, "a session has the ID that it is found by");
    sessions_.erase(found);
}

std::vector<std::shared_ptr<session>> session_table::all() const {
    std::vector<std::shared_ptr<session>> all;
    const lock_guard held(mutex_);
    all.reserve(sessions_.size());
    for (const auto& [id, one] : sessions_)
        all.push_back(one);
    return all;
}

std::vector<std::shared_ptr<session>> session_table::alike(const session& one) const {
    std::vector<std::shared_ptr<session>> alike = all();
    std::erase_if(alike, [&one](const std::shared_ptr<session>& other) {
        const bool is_alike = other->state() == session::phase::valid and
                              other->agreed.client == one.agreed.client and
                              equal_ignoring_case(other->user.name, one.user.name);
        return not is_alike and other.get() != &one;
    });
    // IDs are given in order.
    std::ranges::sort(alike, {}, &session::id);
    return alike;
}

}  // namespace sluice::smb::server
