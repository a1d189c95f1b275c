#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "sluice/base/result.hpp"

namespace sluice::vfs {

struct unix_account {
    uid_t user_id = 0;
    gid_t group_id = 0;
    std::vector<gid_t> groups{};  // besides group_id
};

/// The identity of an account in the file systems of the host, which a thread can take for some calls. Shared
/// by everything that acts for the account, so that it outlives the session that asked for it.
///
/// Thread safety: immutable.
class account_identity {
public:
    /// Errors: EPERM if the process may not take the account's identity (CAP_SETUID, CAP_SETGID). Allocates:
    /// yes.
    [[nodiscard]] static result<std::shared_ptr<const account_identity>> create(unix_account account);

    [[nodiscard]] const unix_account& account() const noexcept { return account_; }

    /// The calling thread has the account's identity for as long as this lives, and its own again afterwards.
    /// Other threads are not affected. Not nested. A thread that continued with the wrong identity would be a
    /// vulnerability, so a failure stops the program; create() has found out whether it is allowed at all.
    class use {
    public:
        explicit use(const account_identity& who) noexcept;
        use(const use&) = delete;
        use& operator=(const use&) = delete;
        ~use();

    private:
        const account_identity& who_;
    };

    /// Whether the calling thread has an account's identity. For what is shared between accounts, and must
    /// ask the kernel for each of them what it knows already.
    [[nodiscard]] static bool is_in_use() noexcept;

private:
    explicit account_identity(unix_account account);

    unix_account account_;
    std::vector<gid_t> own_groups_;  // the groups of the thread that created it
};

using account_ptr = std::shared_ptr<const account_identity>;

}  // namespace sluice::vfs
