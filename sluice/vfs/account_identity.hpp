#pragma once

#include <sys/types.h>

#include <memory>
#include <vector>

#include "sluice/base/result.hpp"

namespace sluice::vfs {

struct unix_account {
    uid_t user_id = 0;
    gid_t group_id = 0;
    std::vector<gid_t> groups{};  // in addition to group_id
};

/// The identity of an account for file-system calls on the host. A thread can assume it for some
/// calls. All code that acts for the account shares it, so it outlives the session that requested
/// it.
///
/// Thread safety: immutable.
class account_identity {
public:
    /// Creates the identity. Errors: EPERM if the process may not assume it (CAP_SETUID,
    /// CAP_SETGID). Allocates: yes.
    [[nodiscard]] static result<std::shared_ptr<const account_identity>> create(unix_account account);

    [[nodiscard]] const unix_account& account() const noexcept { return account_; }

    /// While this exists, the calling thread has the account's identity. Afterwards it has its own
    /// identity again. Other threads are not affected. Not nested. A thread that continued with the
    /// wrong identity would be a vulnerability, so a failure stops the program. create() has
    /// checked whether it is allowed at all.
    class use {
    public:
        explicit use(const account_identity& who) noexcept;
        use(const use&) = delete;
        use& operator=(const use&) = delete;
        ~use();

    private:
        const account_identity& who_;
    };

    /// While this exists, the calling thread has the process's identity, also within a `use`: for
    /// files that belong to the server, such as those of a stream store. Outside of a `use` it does
    /// nothing. A failure stops the program, as in `use`.
    class pause {
    public:
        pause() noexcept;
        pause(const pause&) = delete;
        pause& operator=(const pause&) = delete;
        ~pause();

    private:
        const account_identity* const paused_;
    };

    /// Returns whether the calling thread has an account's identity. Code that is shared between
    /// accounts uses it: it must ask the kernel for each account, even if it knows the answer.
    [[nodiscard]] static bool is_in_use() noexcept;

private:
    explicit account_identity(unix_account account);
    void assume() const noexcept;
    void end() const noexcept;

    unix_account account_;
    std::vector<gid_t> own_groups_;  // the groups of the thread that created it
};

using account_ptr = std::shared_ptr<const account_identity>;

}  // namespace sluice::vfs
