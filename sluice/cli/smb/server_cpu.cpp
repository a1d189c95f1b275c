#include "sluice/cli/smb/server_cpu.hpp"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace sluice::cli {

namespace {

[[nodiscard]] double cpu_seconds_of(pid_t process) noexcept {
    clockid_t clock{};
    timespec used{};
    if (::clock_getcpuclockid(process, &clock) != 0 or ::clock_gettime(clock, &used) != 0) return 0;
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

// The fourth field of /proc/PID/stat; the second is a name in brackets that may have anything in it.
[[nodiscard]] pid_t parent_of(const std::filesystem::path& process) {
    std::ifstream file(process / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t behind_name = line.rfind(") ");
    pid_t parent = 0;
    if (behind_name != std::string::npos and line.size() > behind_name + 4)
        (void)std::from_chars(line.data() + behind_name + 4, line.data() + line.size(), parent);
    return parent;
}

}  // namespace

double cpu_seconds_of(const std::vector<pid_t>& processes) {
    double sum = 0;
    for (const pid_t one : processes)
        sum += cpu_seconds_of(one);
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
        const std::string name = entry.path().filename().string();
        pid_t process = 0;
        const char* const end = name.data() + name.size();
        if (std::from_chars(name.data(), end, process).ptr != end) continue;
        if (std::ranges::find(processes, process) != processes.end()) continue;
        if (std::ranges::find(processes, parent_of(entry.path())) != processes.end())
            sum += cpu_seconds_of(process);
    }
    return sum;
}

}  // namespace sluice::cli
