#include "sluice/cli/serve/process_resources.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace sluice::cli {

namespace {

// Returns the memory that the control groups (version 2) allow: the lowest limit of its own
// group and all above it.
[[nodiscard]] std::uint64_t memory_of_groups(std::uint64_t of_machine) {
    std::ifstream membership("/proc/self/cgroup");
    std::uint64_t least = of_machine;
    for (std::string line; std::getline(membership, line);) {
        if (not line.starts_with("0::/")) continue;
        const std::filesystem::path root("/sys/fs/cgroup");
        for (std::filesystem::path group = root / line.substr(4);; group = group.parent_path()) {
            std::uint64_t bytes = 0;
            // The word "max" is not a number: there is no limit.
            if (std::ifstream(group / "memory.max") >> bytes) least = std::min(least, bytes);
            if (group == root or group == group.root_path()) break;
        }
    }
    return least;
}

}  // namespace

smb::server::process_resources claim_process_resources() {
    smb::server::process_resources found;
    rlimit descriptors{};
    if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
        const rlimit wanted{.rlim_cur = descriptors.rlim_max, .rlim_max = descriptors.rlim_max};
        if (::setrlimit(RLIMIT_NOFILE, &wanted) == 0) descriptors = wanted;
        if (descriptors.rlim_cur != RLIM_INFINITY) found.descriptors = descriptors.rlim_cur;
    }
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page_bytes = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 and page_bytes > 0)
        found.memory_bytes =
            memory_of_groups(static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes));
    return found;
}

}  // namespace sluice::cli
