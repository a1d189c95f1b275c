#include "sluice/fsmutex/queue/fault_guard.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "sluice/base/ensure.hpp"
#include "sluice/fsmutex/limits.hpp"

namespace sluice::fsmutex {

struct fault_guard::entry {
    // The address of the map, and in its low zero bits the number of units. Zero: free. Claimed:
    // not described yet.
    std::atomic<std::uint64_t> map;
    std::atomic<volatile std::uint32_t*> flag;
};

namespace {

constexpr std::uint64_t unit_bytes = 4096;  // pages are multiples of it
constexpr std::uint64_t claimed = 1;        // one unit at address zero, where nothing is mapped

// A handler has no argument of ours, so these belong to the process. Constant initialisation:
// before any code.
constinit std::array<fault_guard::entry, limits::guarded_maps_max> entries{};
constinit struct sigaction previous{};

// Returns whether the address is in a guarded map, and then replaces the map.
bool absorb(const void* address) noexcept {
    const auto where = reinterpret_cast<std::uint64_t>(address);
    for (const fault_guard::entry& each : entries) {
        // acquire: pairs with the release of over(), for the flag.
        const std::uint64_t map = each.map.load(std::memory_order_acquire);
        const std::uint64_t begin = map / unit_bytes * unit_bytes;
        const std::uint64_t bytes = map % unit_bytes * unit_bytes;
        if (begin == 0 or where < begin or where - begin >= bytes) continue;
        // The whole map: otherwise old content, zeros, and later changes of others would mix.
        auto* const memory = reinterpret_cast<std::byte*>(begin);
        if (::mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
            return false;
        *each.flag.load(std::memory_order_relaxed) = 1;
        return true;
    }
    return false;
}

// Does the same as the kernel without a handler. A fault recurs when this returns. A signal that
// was sent is raised again, and is delivered when it is no longer blocked.
void end_process(int signal, bool is_fault) noexcept {
    ::signal(signal, SIG_DFL);
    if (not is_fault) ::raise(signal);
}

void pass_on(int signal, siginfo_t* what, void* context, bool is_fault) noexcept {
    if ((previous.sa_flags & SA_SIGINFO) != 0)
        previous.sa_sigaction(signal, what, context);
    else if (previous.sa_handler == SIG_DFL)
        end_process(signal, is_fault);
    else if (previous.sa_handler != SIG_IGN)
        previous.sa_handler(signal);
    else if (is_fault)  // the kernel does not ignore faults
        end_process(signal, is_fault);
}

void on_bus_error(int signal, siginfo_t* what, void* context) noexcept {
    const int code = errno;
    // Other codes belong to signals that a process sent, or to memory errors without an access.
    const bool is_fault = what->si_code == BUS_ADRERR or what->si_code == BUS_ADRALN or
                          what->si_code == BUS_OBJERR or what->si_code == BUS_MCEERR_AR;
    if (not is_fault or not absorb(what->si_addr)) pass_on(signal, what, context, is_fault);
    errno = code;
}

int install() noexcept {
    // Before our handler can be called.
    if (::sigaction(SIGBUS, nullptr, &previous) != 0) return errno;
    struct sigaction ours{};
    ours.sa_sigaction = on_bus_error;
    ours.sa_mask = previous.sa_mask;
    // On the stack that the previous handler expects.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (previous.sa_flags & (SA_RESTART | SA_NODEFER));
    return ::sigaction(SIGBUS, &ours, nullptr) != 0 ? errno : 0;
}

}  // namespace

result<fault_guard> fault_guard::over(std::span<std::byte> map, volatile std::uint32_t& flag) noexcept {
    static const int problem = install();
    if (problem != 0) return failure({problem, "install a handler of SIGBUS"});
    const auto begin = reinterpret_cast<std::uint64_t>(map.data());
    const std::uint64_t units = (map.size() + unit_bytes - 1) / unit_bytes;
    ENSURE(begin != 0 and begin % unit_bytes == 0 and units < unit_bytes);
    for (entry& each : entries) {
        std::uint64_t free = 0;
        // relaxed: no other data depends on it.
        if (each.map.load(std::memory_order_relaxed) != 0 or
            not each.map.compare_exchange_strong(free, claimed, std::memory_order_relaxed))
            continue;
        each.flag.store(&flag, std::memory_order_relaxed);
        // release: pairs with the acquire of the handler.
        each.map.store(begin | units, std::memory_order_release);
        return fault_guard(&each);
    }
    return failure({ENOMEM, "guard another mapped file"});
}

fault_guard::~fault_guard() {
    // release: our accesses to the map come before another guard can claim the entry.
    if (entry_ != nullptr) entry_->map.store(0, std::memory_order_release);
}

}  // namespace sluice::fsmutex
