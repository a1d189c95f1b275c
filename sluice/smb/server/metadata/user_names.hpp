#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sluice/smb/auth/authentication.hpp"
#include "sluice/smb/server/core/ranked_mutex.hpp"

namespace sluice::smb::server {

/// The names of the users that can log on, by SID and by name, for everyone who looks one up.
/// Monitor: any thread; `mutex_` guards the pointer to the table, which is immutable. Its rank
/// allows a reader that holds any other mutex but a leaf, which the accounts lock. Allocates: a
/// table, when the accounts have changed.
class user_names {
public:
    struct table {
        std::uint64_t generation = 0;                // that the accounts had
        std::map<std::string, std::string> by_sid;   // names by the text of the SID
        std::map<std::string, std::string> by_name;  // names by folded name
        // Names by the relative ID, except the one that samr gives to a group. If two users have
        // the same one, the first counts.
        std::map<std::uint32_t, std::string> by_number;
    };

    /// `accounts` outlives this.
    explicit user_names(auth::account_source& accounts) noexcept : accounts_(accounts) {}
    user_names(const user_names&) = delete;
    user_names& operator=(const user_names&) = delete;

    /// Returns the present table, never null. Complexity: linear in the users when they have
    /// changed.
    [[nodiscard]] std::shared_ptr<const table> current();

private:
    [[nodiscard]] std::shared_ptr<const table> made() const;

    auth::account_source& accounts_;
    mutable ranked_mutex<lock_rank::memory> mutex_;
    std::shared_ptr<const table> current_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::smb::server
