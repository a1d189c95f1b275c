// Facilities of this host: limits, io_uring, confinement, CPU, disk pressure.

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sluice/cli/doctor/local/local_checks.hpp"
#include "sluice/cli/doctor/local/proc_text.hpp"
#include "sluice/cli/doctor/text_file.hpp"
#include "sluice/io/best_available.hpp"

namespace sluice::cli::doctor {
namespace {

[[nodiscard]] finding warning(std::string check, std::string what, std::string evidence, std::string remedy) {
    return {.level = severity::warning,
            .check = std::move(check),
            .what = std::move(what),
            .evidence = std::move(evidence),
            .remedy = std::move(remedy)};
}

// Returns the soft limit of the server. If none runs or it is not visible, returns the hard limit
// of this process, to which a server raises its own.
[[nodiscard]] std::uint64_t limit_of(const local_state& state, const char* name, int resource) {
    if (not state.servers.empty()) {
        const auto text = text_of_file(fmt::format("/proc/{}/limits", state.servers.front().process));
        if (const auto known = parse_limit(text, name); known) return *known;
    }
    rlimit limit{};
    return ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 ? limit.rlim_max
                                                                              : RLIM_INFINITY;
}

// Returns the version of Landlock that the kernel supports; 0: none.
[[nodiscard]] long landlock_version() noexcept {
    constexpr unsigned query_version = 1;  // LANDLOCK_CREATE_RULESET_VERSION
    const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, query_version);
    return version > 0 ? version : 0;
}

}  // namespace

void check_limits(local_state& state, finding_list& into) {
    constexpr std::uint64_t files_min = 4096;
    constexpr std::uint64_t locked_min = 8U << 20;
    const std::uint64_t files = limit_of(state, "Max open files", RLIMIT_NOFILE);
    const std::uint64_t locked = limit_of(state, "Max locked memory", RLIMIT_MEMLOCK);
    if (files < files_min)
        into.add(warning(
            "limits", fmt::format("a process may have only {} open files, which limits clients", files),
            "RLIMIT_NOFILE", "ulimit -n 65536 before 'sluice serve'; systemd: LimitNOFILE=65536"));
    else
        into.note("limits", "the limit of open files is sufficient",
                  fmt::format("RLIMIT_NOFILE is {}", files));
    if (locked < locked_min)
        into.add(warning("limits",
                         fmt::format("a process may lock only {} KiB of memory, which kernels before 5.12 "
                                     "count for io_uring",
                                     locked >> 10),
                         "RLIMIT_MEMLOCK",
                         "ulimit -l unlimited before 'sluice serve'; systemd: LimitMEMLOCK=infinity"));
}

void check_io_uring(local_state&, finding_list& into) {
    const auto setting = parse_numbers(text_of_file("/proc/sys/kernel/io_uring_disabled"));
    const bool is_disabled = not setting.empty() and setting.front() != 0;
    const std::string reason(io::best_available_reason());
    if (reason.starts_with("io_uring")) {
        into.note("io_uring", "the server can use io_uring",
                  is_disabled ? "kernel.io_uring_disabled is not 0" : "");
        return;
    }
    into.add(warning(
        "io_uring",
        "the server cannot use io_uring, and uses epoll and worker threads, which need more "
        "CPU time for files",
        reason,
        is_disabled ? "sysctl -w kernel.io_uring_disabled=0"
                    : "permit io_uring in the seccomp profile of the container, or use Linux 5.15 or later"));
}

void check_confinement(local_state& state, finding_list& into) {
    const std::string modules = text_of_file("/sys/kernel/security/lsm");
    const long version = landlock_version();
    constexpr long needed_version = 2;  // as file_confinement
    if (version >= needed_version)
        into.note("confinement", "the server can restrict itself to its shares",
                  fmt::format("Landlock, version {}", version));
    else
        into.add(warning(
            "confinement",
            "the server cannot restrict itself to its shares, because the kernel does not have "
            "Landlock, or an old version",
            modules.empty() ? "the list of security modules is not readable" : "modules: " + modules,
            "boot with lsm=landlock,... before the other modules in the kernel command line (Linux 5.19 or "
            "later)"));
    if (trimmed(text_of_file("/sys/fs/selinux/enforce")) == "1") {
        const std::string directory =
            state.options.shares.empty() ? "DIRECTORY" : state.options.shares.front().path;
        into.add(warning(
            "confinement",
            "SELinux is enforcing: it may deny the server a share although owner and mode permit it",
            "/sys/fs/selinux/enforce is 1",
            fmt::format(
                "ausearch -m avc -ts recent; semanage fcontext -a -t public_content_rw_t '{0}(/.*)?' && "
                "restorecon -R {0}",
                directory)));
    }
    const std::string profile(trimmed(text_of_file("/proc/self/attr/current")));
    if (profile.ends_with("(enforce)"))
        into.add(warning(
            "confinement", "an AppArmor profile confines this program, and a server that is started like it",
            profile, "journalctl -k --grep DENIED; add the directories of the shares to the profile"));
}

void check_cpu(local_state&, finding_list& into) {
    const cpu_features seen = parse_cpu(text_of_file("/proc/cpuinfo"));
    if (not seen.is_known) return;
    if (not seen.has_aes or not seen.has_carryless_multiply)
        into.add(warning(
            "cpu", "the CPU has no instructions for AES, so that encryption and signing limit the speed",
            "aes or carry-less multiplication is missing in /proc/cpuinfo",
            "in a virtual machine, pass the CPU through (qemu: -cpu host); else encrypt only the shares that "
            "need it ('encrypt = true' per share)"));
    else
        into.note("cpu", "the CPU has instructions for AES",
                  seen.has_vector_aes ? "AES and vector AES (VAES)" : "AES, without vector AES (VAES)");
}

void check_pressure(local_state&, finding_list& into) {
    constexpr double busy_percent = 10;
    const std::string text = text_of_file("/proc/pressure/io");
    const auto full = parse_pressure(text, "full");
    const auto some = parse_pressure(text, "some");
    if (not full or not some) return;
    const std::string evidence =
        fmt::format("in the last 10 s, tasks waited for disks in {:.1f}% of the time, all tasks in {:.1f}%",
                    *some, *full);
    if (*full >= busy_percent)
        into.add(warning("disk", "the disks of this host are overloaded", evidence,
                         "iotop -o names the programs that use them; iostat -x 1 names the disks"));
    else
        into.note("disk", "the disks of this host are not overloaded", evidence);
}

}  // namespace sluice::cli::doctor
