#include "sluice/smb/server/metadata/user_names.hpp"

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/metadata/user_sids.hpp"
#include "sluice/smb/wire/rpc/rpc_account.hpp"

namespace sluice::smb::server {

// Two threads may make a table at the same time; both are right.
std::shared_ptr<const user_names::table> user_names::current() {
    {
        const lock_guard held(mutex_);
        if (current_ != nullptr and current_->generation == accounts_.generation()) return current_;
    }
    std::shared_ptr<const table> fresh = made();
    std::shared_ptr<const table> outdated = fresh;  // released without the mutex
    const lock_guard held(mutex_);
    current_.swap(outdated);
    return fresh;
}

// The generation is read first, so that the next call detects a change in between.
std::shared_ptr<const user_names::table> user_names::made() const {
    auto fresh = std::make_shared<table>();
    fresh->generation = accounts_.generation();
    for (const std::string& name : accounts_.found_names()) {
        const wire::sid id = sid_of({.name = name, .domain = {}});
        fresh->by_sid[text_of(id)] = name;
        const std::uint32_t number = id.sub_authorities().back();
        if (number != wire::sam_group_of_users) fresh->by_number.try_emplace(number, name);
        fresh->by_name[fold(name)] = name;
    }
    ENSURE(fresh->by_sid.size() <= fresh->by_name.size(), "a user has one SID");
    return fresh;
}

}  // namespace sluice::smb::server
