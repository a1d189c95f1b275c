#include "sluice/fsmutex/process/processes_testing.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "sluice/base/ensure.hpp"

namespace sluice::fsmutex {
namespace {

// Returns the fields after the name in /proc/PID/stat: the state and the numbers.
std::string status_of(pid_t id) {
    std::ifstream file("/proc/" + std::to_string(id) + "/stat");
    std::string line;
    std::getline(file, line);
    const auto name_end = line.rfind(')');
    return name_end == std::string::npos ? "" : line.substr(name_end + 2);
}

}  // namespace

void* map_shared(std::size_t bytes) {
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ENSURE(memory != MAP_FAILED);
    return memory;
}

void unmap_shared(void* memory, std::size_t bytes) {
    ::munmap(memory, bytes);
}

namespace {

// A raw clone: the child of a process with one thread needs no part of fork's work.
pid_t fork_into(namespaces in) {
    if (in == namespaces::shared) return ::fork();
    return static_cast<pid_t>(::syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0));
}

// Mounts a /proc that shows the namespace's own processes.
bool mount_own_proc() {
    return enter_own_times() and ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 and
           ::mount("proc", "/proc", "proc", 0, nullptr) == 0;
}

}  // namespace

process::process(const std::function<void()>& body, namespaces in) : id_(fork_into(in)) {
    ENSURE(id_ >= 0);
    if (id_ != 0) return;
    if (in == namespaces::own and not mount_own_proc())
        fail_child("cannot mount /proc in the new namespaces");
    try {
        body();
    } catch (const std::exception& why) {
        fail_child(why.what());
    }
    ::_exit(0);
}

void process::send(int signal) const {
    if (id_ > 0) ::kill(id_, signal);
}

bool enter_own_times() {
    if (::unshare(CLONE_NEWTIME) != 0) return false;
    std::ofstream("/proc/self/timens_offsets") << "monotonic 1000 0\nboottime 1000 0\n";
    const int times = ::open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
    const bool is_in = ::setns(times, CLONE_NEWTIME) == 0;
    ::close(times);
    return is_in;
}

bool may_have_own_namespaces() {
    process probe([] {
        if (::unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWTIME) != 0) ::_exit(1);
    });
    return probe.join();
}

bool process::join() {
    if (id_ <= 0) return false;
    int status = 0;
    ENSURE(::waitpid(std::exchange(id_, -1), &status, 0) > 0);
    return WIFEXITED(status) and WEXITSTATUS(status) == 0;
}

void process::stop() {
    if (id_ <= 0) return;
    send(SIGKILL);
    (void)join();
}

void fail_child(const char* what) {
    // No stream: another thread may have held its lock when this process was forked.
    const std::string line = "process " + std::to_string(::getpid()) + ": " + what + '\n';
    (void)!::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(1);
}

bool excludes_while_it_comes_and_goes(const std::function<std::unique_ptr<shared_fs_mutex>()>& open,
                                      std::chrono::milliseconds how_long) {
    const shared_memory<std::atomic<int>> inside;
    std::vector<process> workers;
    for (int i = 0; i != 4; ++i)
        workers.emplace_back([&] {
            const auto end = std::chrono::steady_clock::now() + how_long;
            while (std::chrono::steady_clock::now() < end) {
                const auto own = open();
                const auto held = own->lock(entity(1));
                if (not held) fail_child(held.error().message().c_str());
                if (inside->fetch_add(1) != 0) fail_child("two hold one entity");
                inside->fetch_sub(1);
            }
        });
    bool are_well = true;
    for (process& each : workers)
        are_well = each.join() and are_well;
    return are_well;
}

process process_that_holds(const std::function<std::unique_ptr<shared_fs_mutex>()>& open, entity what) {
    const shared_memory<std::atomic<bool>> holds;
    process holder([&] {
        const auto own = open();
        const auto held = own->lock(what);
        if (not held) fail_child("the lock was not granted to its intended holder");
        holds->store(true);
        std::this_thread::sleep_for(std::chrono::hours(1));
    });
    ENSURE(eventually([&] { return holds->load(); }), "a process holds the lock");
    return holder;
}

bool eventually(const std::function<bool()>& holds, std::chrono::milliseconds within) {
    const auto end = std::chrono::steady_clock::now() + within;
    while (not holds()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

std::chrono::milliseconds processor_time_of(pid_t id) {
    std::istringstream fields(status_of(id));
    std::string skipped;
    for (int i = 0; i != 11; ++i)
        fields >> skipped;
    long user = 0;
    long system = 0;
    fields >> user >> system;
    return std::chrono::milliseconds((user + system) * 1000 / ::sysconf(_SC_CLK_TCK));
}

bool is_asleep(pid_t id) {
    const std::string status = status_of(id);
    return not status.empty() and (status[0] == 'S' or status[0] == 'D');
}

}  // namespace sluice::fsmutex
