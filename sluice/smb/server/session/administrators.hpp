#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sluice/smb/server/core/ranked_mutex.hpp"
#include "sluice/smb/server/session/session.hpp"

namespace sluice::smb::server {

/// The users who may see and end the sessions and opens of others, on the pipes of the server.
/// Monitor: any thread; `mutex_` guards the names. Its rank allows a reader that holds any other
/// mutex. Allocates: the names.
class administrators {
public:
    administrators() noexcept = default;
    administrators(const administrators&) = delete;
    administrators& operator=(const administrators&) = delete;

    /// They are these, without a domain, from now on, also for sessions that exist.
    void publish(std::vector<std::string> fresh) {
        const lock_guard held(mutex_);
        names_.swap(fresh);  // the caller's argument, released after the mutex
    }
    /// Returns whether one of the names means that user, according to `accounts`. Guests and the
    /// anonymous never are. Complexity: linear in the names.
    [[nodiscard]] bool contain(const auth::account_source& accounts, const user_identity& user) const {
        if (user.is_guest or user.is_anonymous) return false;
        const lock_guard held(mutex_);
        return std::ranges::any_of(names_, [&](const std::string& name) {
            return accounts.is_same({.user = name, .domain = {}}, {.user = user.name, .domain = user.domain});
        });
    }

private:
    mutable ranked_mutex<lock_rank::memory> mutex_;
    std::vector<std::string> names_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
