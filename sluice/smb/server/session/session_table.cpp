#include "sluice/smb/server/session/session_table.hpp"

#include "sluice/base/case_fold.hpp"

namespace sluice::smb::server {

namespace {

[[nodiscard]] bool is_of_same_user_and_client(const session& one, const session& other) noexcept {
    return one.agreed.client == other.agreed.client and equal_ignoring_case(one.user.name, other.user.name);
}

}  // namespace

void session_table::add(const std::shared_ptr<session>& fresh) {
    ENSURE(fresh->id <= last_id_.load(std::memory_order_relaxed), "a session has an ID of the table");
    const lock_guard held(mutex_);
    ENSURE(sessions_.emplace(fresh->id, entry{.one = fresh}).second, "an ID is given to one session");
}

std::shared_ptr<session> session_table::find(std::uint64_t id) const noexcept {
    const lock_guard held(mutex_);
    const auto found = sessions_.find(id);
    ENSURE(found == sessions_.end() or found->second.one->id == id,
           "a session has the ID that it is found by");
    return found == sessions_.end() ? nullptr : found->second.one;
}

void session_table::remove(std::uint64_t id) noexcept {
    std::shared_ptr<session> removed;  // perhaps the last to hold it: released without the mutex
    const lock_guard held(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    removed = std::move(found->second.one);
    ENSURE(removed->id == id, "a session has the ID that it is found by");
    sessions_.erase(found);
}

bool session_table::claim_dialect(const session& fresh) noexcept {
    const lock_guard held(mutex_);
    for (const auto& [id, other] : sessions_) {
        // The user of a session that has claimed none may be changing.
        if (not other.has_claimed_dialect or not is_of_same_user_and_client(*other.one, fresh)) continue;
        const bool is_gone = other.one->state() == session::phase::gone;
        if (not is_gone and other.one->agreed.dialect != fresh.agreed.dialect) return false;
    }
    const auto own = sessions_.find(fresh.id);
    if (own == sessions_.end()) return true;  // it has ended
    ENSURE(own->second.one.get() == &fresh and not own->second.has_claimed_dialect,
           "a session claims its dialect once");
    own->second.has_claimed_dialect = true;
    return true;
}

std::vector<std::shared_ptr<session>> session_table::all() const {
    std::vector<std::shared_ptr<session>> all;
    const lock_guard held(mutex_);
    all.reserve(sessions_.size());
    for (const auto& [id, each] : sessions_)
        all.push_back(each.one);
    return all;
}

std::vector<std::shared_ptr<session>> session_table::after(std::uint64_t id, std::size_t most) const {
    std::vector<std::shared_ptr<session>> some;
    const lock_guard held(mutex_);
    for (auto next = sessions_.upper_bound(id); next != sessions_.end() and some.size() != most; ++next)
        some.push_back(next->second.one);
    ENSURE(some.empty() or some.front()->id > id, "a list continues after the session before it");
    return some;
}

std::vector<std::shared_ptr<session>> session_table::alike(const session& one) const {
    std::vector<std::shared_ptr<session>> alike = all();
    std::erase_if(alike, [&one](const std::shared_ptr<session>& other) {
        const bool is_alike =
            other->state() == session::phase::valid and is_of_same_user_and_client(*other, one);
        return not is_alike and other.get() != &one;
    });
    return alike;
}

}  // namespace sluice::smb::server
