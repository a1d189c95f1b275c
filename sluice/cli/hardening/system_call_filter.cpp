#include "sluice/cli/hardening/system_call_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "sluice/cli/hardening/memory_protection.hpp"

namespace sluice::cli {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t architecture = 0;
#endif

// Newer than the headers of Debian 12. These numbers are the same on all architectures.
constexpr std::uint32_t process_madvise_number = 440;

constexpr auto denied = std::to_array<std::uint32_t>({
    // Execution of programs, and access to other processes.
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kcmp,
    SYS_pidfd_getfd,
    process_madvise_number,
    // File systems and namespaces.
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_setns,
    SYS_unshare,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    SYS_open_by_handle_at,
    // The kernel.
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_kexec_file_load,
    SYS_reboot,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_syslog,
    SYS_acct,
    SYS_lookup_dcookie,
    SYS_personality,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    // The machine's clock and name.
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_sethostname,
    SYS_setdomainname,
#if defined(__x86_64__)
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
    SYS__sysctl,
#endif
});

[[nodiscard]] std::vector<sock_filter> make_program() {
    const auto load = [](std::size_t offset) {
        return sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
    };
    const auto answer = [](std::uint32_t action) { return sock_filter BPF_STMT(BPF_RET | BPF_K, action); };
    const std::uint32_t refuse = SECCOMP_RET_ERRNO | EPERM;
    std::vector<sock_filter> program{
        // Calls of another architecture (32 bits) have other numbers: none of them is needed.
        load(offsetof(seccomp_data, arch)),
        sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0),
        answer(refuse),
        load(offsetof(seccomp_data, nr)),
#if defined(__x86_64__)
        sock_filter BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x4000'0000U, 0, 1),  // x32
        answer(refuse),
#endif
    };
    for (const std::uint32_t each : denied) {
        program.push_back(sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, each, 0, 1));
        program.push_back(answer(refuse));
    }
    program.push_back(answer(SECCOMP_RET_ALLOW));
    return program;
}

}  // namespace

hardening_measure filter_system_calls() noexcept {
    hardening_measure made{.name = "system call filter"};
    if (is_sanitizer_build()) {
        made.inactive_because = "this is a sanitizer's build";
        return made;
    }
    if (architecture == 0) {
        made.inactive_because = "not available on this architecture";
        return made;
    }
    std::vector<sock_filter> program = make_program();
    const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
    if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) != 0)
        made.inactive_because = std::strerror(errno);
    return made;
}

}  // namespace sluice::cli
