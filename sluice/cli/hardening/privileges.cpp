#include "sluice/cli/hardening/privileges.hpp"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sluice::cli {
namespace {

constexpr std::array kept_always{CAP_CHOWN,  CAP_DAC_OVERRIDE,     CAP_DAC_READ_SEARCH, CAP_FOWNER,
                                 CAP_FSETID, CAP_NET_BIND_SERVICE, CAP_IPC_LOCK};
constexpr std::array kept_to_impersonate{CAP_SETUID, CAP_SETGID};
constexpr std::array kept_otherwise{CAP_SYS_RESOURCE};

// The kernel refuses numbers that it does not know; no kernel has more.
constexpr int capabilities_max = 64;

[[nodiscard]] std::uint64_t kept(const needed_privileges& needed) noexcept {
    std::uint64_t set = 0;
    const auto add = [&](const auto& capabilities) {
        for (const int each : capabilities)
            set |= std::uint64_t{1} << each;
    };
    add(kept_always);
    needed.impersonates ? add(kept_to_impersonate) : add(kept_otherwise);
    if (needed.has_quotas) set |= std::uint64_t{1} << CAP_SYS_ADMIN;
    return set;
}

// Only a process with CAP_SETPCAP may change the bounding set; without it, no_new_privs
// has the same effect.
void drop_bounding_set(std::uint64_t keep) noexcept {
    for (int each = 0; each != capabilities_max; ++each)
        if ((keep >> each & 1U) == 0) (void)::prctl(PR_CAPBSET_DROP, each, 0, 0, 0);
}

[[nodiscard]] bool limit_capabilities(std::uint64_t keep) noexcept {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    if (::syscall(SYS_capget, &header, sets.data()) != 0) return false;
    for (std::size_t i = 0; i != sets.size(); ++i) {
        const auto word = static_cast<std::uint32_t>(keep >> (32 * i));
        sets[i].permitted &= word;
        sets[i].effective &= word;
        sets[i].inheritable = 0;
    }
    return ::syscall(SYS_capset, &header, sets.data()) == 0;
}

}  // namespace

bool obey_limits_of_accounts() noexcept {
    return limit_capabilities(~(std::uint64_t{1} << CAP_SYS_RESOURCE));
}

hardening_measure drop_privileges(const needed_privileges& needed) noexcept {
    hardening_measure made{.name = "no unused privileges"};
    const std::uint64_t keep = kept(needed);
    drop_bounding_set(keep);
    (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (not limit_capabilities(keep) or ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        made.inactive_because = std::strerror(errno);
    return made;
}

}  // namespace sluice::cli
