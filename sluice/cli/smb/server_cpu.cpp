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

// Returns the fourth field of /proc/PID/stat; the second is a name in parentheses that can contain
// any character.
[[nodiscard]] pid_t parent_of(const std::filesystem::path& process) {
    std::ifstream file(process / "stat");
    std::string line;
    std::getline(file, line);
    const std::size_t after_name = line.rfind(") ");
    pid_t parent = 0;
    if (after_name != std::string::npos and line.size() > after_name + 4)
        (void)std::from_chars(line.data() + after_name + 4, line.data() + line.size(), parent);
    return parent;
}

[[nodiscard]] pid_t number_of(const std::filesystem::directory_entry& entry) {  // 0: not a process
    const std::string name = entry.path().filename().string();
    pid_t number = 0;
    const char* const end = name.data() + name.size();
    return std::from_chars(name.data(), end, number).ptr == end ? number : 0;
}

// Returns these processes, and their present children.
[[nodiscard]] std::vector<pid_t> with_children(const std::vector<pid_t>& processes) {
    std::vector<pid_t> all = processes;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
        const pid_t process = number_of(entry);
        const bool is_known = std::ranges::find(processes, process) != processes.end();
        if (process == 0 or is_known) continue;
        const bool is_child = std::ranges::find(processes, parent_of(entry.path())) != processes.end();
        if (is_child) all.push_back(process);
    }
    return all;
}

}  // namespace

double cpu_seconds_of(const std::vector<pid_t>& processes) {
    double sum = 0;
    for (const pid_t process : with_children(processes))
        sum += cpu_seconds_of(process);
    return sum;
}

std::map<pid_t, double> cpu_seconds_by_thread(const std::vector<pid_t>& processes) {
    std::map<pid_t, double> by_thread;
    for (const pid_t process : with_children(processes)) {
        const std::string threads = "/proc/" + std::to_string(process) + "/task";
        std::error_code unreadable;
        for (const auto& entry : std::filesystem::directory_iterator(threads, unreadable)) {
            double on_processor_ns = 0;
            if (std::ifstream(entry.path() / "schedstat") >> on_processor_ns)
                by_thread[number_of(entry)] = on_processor_ns / 1e9;
        }
    }
    return by_thread;
}

}  // namespace sluice::cli
