#pragma once

#include "sluice/cli/hardening/measure.hpp"

namespace sluice::cli {

/// Drops permanently all privileges that the server does not need: capabilities that are not listed
/// below, also in the bounding, inheritable and ambient sets; and the privileges that execve(2) of
/// a set-user-ID program would give (no_new_privs).
///
/// Root keeps: access to the files of every account, as a server that runs as root promises (CHOWN,
/// DAC_OVERRIDE, DAC_READ_SEARCH, FOWNER, FSETID), ports below 1024 (NET_BIND_SERVICE), locked
/// memory for io_uring (IPC_LOCK), and large pipes and reserved blocks of file systems
/// (SYS_RESOURCE); with `impersonates` also the change of accounts (SETUID, SETGID).
///
/// Thread safety: capabilities belong to a thread. Call it before the process has a second one.
[[nodiscard]] hardening_measure drop_privileges(bool impersonates) noexcept;

}  // namespace sluice::cli
