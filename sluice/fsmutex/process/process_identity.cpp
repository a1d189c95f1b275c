#include "sluice/fsmutex/process/process_identity.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <optional>

namespace sluice::fsmutex {
namespace {

using text_buffer = std::array<char, 1024>;

result<std::string_view> read_text(const char* path, text_buffer& storage) noexcept {
    const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return failure(error::with_path(errno, "open", path));
    const ssize_t got = ::read(descriptor, storage.data(), storage.size());
    const int code = errno;
    ::close(descriptor);
    if (got < 0) return failure(error::with_path(code, "read", path));
    return std::string_view(storage.data(), static_cast<std::size_t>(got));
}

struct process_state {
    char letter;  // as in ps(1)
    std::uint64_t start_time;
};

// Parses the third and the 22nd field of /proc/PID/stat. The second, a name in parentheses, may
// contain anything.
std::optional<process_state> parse_state(std::string_view line) noexcept {
    const auto name_end = line.rfind(')');
    if (name_end == std::string_view::npos or line.size() < name_end + 3) return std::nullopt;
    process_state found{.letter = line[name_end + 2], .start_time = 0};
    std::size_t at = name_end + 1;
    for (int field = 3; field <= 22; ++field) {
        at = line.find(' ', at);
        if (at == std::string_view::npos) return std::nullopt;
        ++at;
    }
    const auto parsed = std::from_chars(line.data() + at, line.data() + line.size(), found.start_time);
    if (parsed.ec != std::errc()) return std::nullopt;
    return found;
}

}  // namespace

result<process_identity> process_identity::of_this_process() noexcept {
    process_identity self;
    self.id = static_cast<std::uint32_t>(::getpid());
    if (::gethostname(self.host.data(), self.host.size() - 1) != 0)
        self.host.back() = '\0';  // it was too long
    text_buffer storage;
    const auto boot = read_text("/proc/sys/kernel/random/boot_id", storage);
    if (not boot) return failure(boot.error());
    if (boot->size() < self.boot_id.size()) return failure({EIO, "read the boot id"});
    boot->copy(self.boot_id.data(), self.boot_id.size());
    const auto line = read_text("/proc/self/stat", storage);
    if (not line) return failure(line.error());
    const auto state = parse_state(*line);
    if (not state) return failure({EIO, "read /proc/self/stat"});
    self.start_time = state->start_time;
    struct stat of_ids{};
    if (::stat("/proc/self/ns/pid", &of_ids) != 0) return failure(error::last("stat /proc/self/ns/pid"));
    // Start times are relative to the reader's namespace of times. A kernel without such namespaces
    // has one.
    struct stat of_times{};
    if (::stat("/proc/self/ns/time", &of_times) != 0) of_times.st_ino = 0;
    // The kernel's inode numbers here have 32 bits.
    self.namespaces = of_ids.st_ino << 32 ^ of_times.st_ino;
    return self;
}

bool is_surely_dead(std::uint32_t id, std::uint64_t start_time) noexcept {
    if (::kill(static_cast<pid_t>(id), 0) != 0 and errno == ESRCH) return true;
    std::array<char, 40> path{};
    std::snprintf(path.data(), path.size(), "/proc/%u/stat", id);
    text_buffer storage;
    const auto line = read_text(path.data(), storage);
    // Gone in the meantime, or hidden (hidepid): then it is unknown.
    if (not line) return line.error() == std::errc::no_such_process;
    const auto state = parse_state(*line);
    if (not state) return false;
    const bool is_zombie = state->letter == 'Z' or state->letter == 'X';
    return is_zombie or state->start_time != start_time;
}

}  // namespace sluice::fsmutex
