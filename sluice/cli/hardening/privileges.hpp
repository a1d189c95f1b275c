#pragma once

#include "sluice/cli/hardening/measure.hpp"

namespace sluice::cli {

/// The options of a server that need more privileges.
struct needed_privileges {
    bool impersonates = false;
    bool has_quotas = false;
};

/// Drops permanently all privileges that the server does not need: capabilities that are not listed
/// below, also in the bounding, inheritable and ambient sets; and the privileges that execve(2) of
/// a set-user-ID program would give (no_new_privs).
///
/// Root keeps: access to the files of every account, as a server that runs as root promises (CHOWN,
/// DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID), ports below 1024 (NET_BIND_SERVICE), locked
/// memory for io_uring (IPC_LOCK), and large pipes and reserved blocks of file systems
/// (SYS_RESOURCE); with `impersonates` the change of accounts (SETUID, SETGID) instead, and with
/// `has_quotas` the quotas of all users, which no smaller capability permits (SYS_ADMIN).
///
/// Thread safety: capabilities belong to a thread. Call it before the process has a second one.
[[nodiscard]] hardening_measure drop_privileges(const needed_privileges& needed) noexcept;

/// Drops SYS_RESOURCE only, with which the kernel would ignore the quotas of the accounts that the
/// server acts for, and let them use reserved blocks. Returns whether it succeeded. Thread safety:
/// as drop_privileges.
[[nodiscard]] bool obey_limits_of_accounts() noexcept;

}  // namespace sluice::cli
