#include "sluice/vfs/account_identity.hpp"

#include <grp.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

thread_local const account_identity* identity_of_thread = nullptr;  // null: that of the process

// Sets the groups of this thread only. The C library's setgroups would change every thread.
bool set_groups_of_thread(const std::vector<gid_t>& groups) noexcept {
    return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

// Sets the user of this thread. These calls do not report failures, only the previous value, so
// each is called twice.
bool set_user_of_thread(uid_t user) noexcept {
    (void)::setfsuid(user);
    return static_cast<uid_t>(::setfsuid(user)) == user;
}
bool set_group_of_thread(gid_t group) noexcept {
    (void)::setfsgid(group);
    return static_cast<gid_t>(::setfsgid(group)) == group;
}

std::vector<gid_t> groups_of_thread() {
    std::vector<gid_t> groups(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
    const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
    groups.resize(static_cast<std::size_t>(std::max(0, count)));
    return groups;
}

}  // namespace

account_identity::account_identity(unix_account account)
    : account_(std::move(account)), own_groups_(groups_of_thread()) {}

result<account_ptr> account_identity::create(unix_account account) {
    account_ptr created(new account_identity(std::move(account)));
    const bool may = set_groups_of_thread(created->account_.groups) and
                     set_group_of_thread(created->account_.group_id) and
                     set_user_of_thread(created->account_.user_id);
    (void)::setfsuid(::geteuid());
    (void)::setfsgid(::getegid());
    (void)set_groups_of_thread(created->own_groups_);
    if (not may) return failure({EPERM, "impersonate"});
    return created;
}

// The user is set last and restored first, because the capabilities that override permissions
// change with it.
void account_identity::assume() const noexcept {
    ENSURE(set_groups_of_thread(account_.groups));
    ENSURE(set_group_of_thread(account_.group_id));
    ENSURE(set_user_of_thread(account_.user_id));
}

void account_identity::end() const noexcept {
    ENSURE(set_user_of_thread(::geteuid()));
    ENSURE(set_group_of_thread(::getegid()));
    ENSURE(set_groups_of_thread(own_groups_));
}

account_identity::use::use(const account_identity& who) noexcept : who_(who) {
    ENSURE(identity_of_thread == nullptr, "a thread acts for one account at a time");
    who.assume();
    identity_of_thread = &who;
}

account_identity::use::~use() {
    ENSURE(identity_of_thread == &who_, "a pause ends before the use that it pauses");
    identity_of_thread = nullptr;
    who_.end();
}

account_identity::pause::pause() noexcept : paused_(std::exchange(identity_of_thread, nullptr)) {
    if (paused_ != nullptr) paused_->end();
}

account_identity::pause::~pause() {
    if (paused_ == nullptr) return;
    ENSURE(identity_of_thread == nullptr, "a use within a pause ends before it");
    paused_->assume();
    identity_of_thread = paused_;
}

bool account_identity::is_in_use() noexcept {
    return identity_of_thread != nullptr;
}

}  // namespace sluice::vfs
