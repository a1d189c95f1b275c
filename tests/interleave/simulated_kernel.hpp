#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"

// The kernel that the processes of a scenario see: thread i of it is process i. The program under
// test is the one that is shipped: the linker redirects its system calls here (--wrap, see
// CMakeLists.txt), and the code that accesses mapped memory is compiled to call memory_hooks.cpp.
// Each call is a step of the scheduler.
//
// It behaves like Linux in these respects: files in memory, with one writer at a time, readers that
// may see half of a write, and kills that leave complete pages; locks of open file descriptions;
// futexes; names, and files without a name; the data of /proc about processes. Memory allocated by
// a process is released with its schedule, so a killed process is not unwound.

namespace sluice::interleave {

class simulated_kernel {
public:
    simulated_kernel();
    simulated_kernel(const simulated_kernel&) = delete;
    simulated_kernel& operator=(const simulated_kernel&) = delete;
    ~simulated_kernel();

    /// Runs `body` as a process before the exploration begins; no other process takes a step.
    void as(unsigned process, const std::function<void()>& body);
    /// Closes all descriptors of a process. Its memory stays, without a user.
    void kill(unsigned process);
    /// Returns false in the middle of a page that it writes: the kernel does not stop there.
    [[nodiscard]] bool may_be_killed(unsigned process) const;

    [[nodiscard]] const clock_source& clock() const;
    [[nodiscard]] random_source& random(unsigned process);
    /// Returns the number of files that have a name.
    [[nodiscard]] std::size_t file_count() const;
    /// Returns the content of the file that was created last.
    [[nodiscard]] const std::byte* content() const;
    [[nodiscard]] std::size_t content_bytes() const;
    /// Returns the number of system calls so far, of all processes.
    [[nodiscard]] std::uint64_t calls() const;

    /// Sets how many more bytes can be written after the ends of files until the disk is full.
    void leave_room(std::uint64_t bytes);
    /// Makes the volume one that other hosts can have mounted, as over NFS; each process is on a
    /// separate host. A file that is removed while its remover has it open keeps a link until it is
    /// closed; then it is stale for others.
    void share_with_hosts();
    /// Makes files appear empty to fstat, although they can be read: for a program that must not
    /// trust the size.
    void hide_sizes();
    /// Distributes the processes over this number of processors; there is one until then.
    void give_processors(unsigned count);
    /// Sets how often a signal may interrupt a wait for a lock.
    void send_signals(unsigned count);

    struct state;  // simulated_machine.hpp

private:
    std::unique_ptr<state> state_;
};

/// Announces accesses to mapped memory. Other threads take steps before atomic ones only; a kill
/// may come before any that changes memory.
void record_access(const volatile void* address, std::size_t bytes, bool is_write) noexcept;
void record_atomic_load(const volatile void* address, std::uint64_t value) noexcept;
/// Announces a copy of memory that others may be writing, as one access.
void record_copy(const volatile void* address) noexcept;
void record_atomic_change(const volatile void* address, std::size_t bytes) noexcept;
/// Allocates memory that is released with the schedule; returns null if the caller is not a process
/// of a scenario.
[[nodiscard]] void* allocate_for_process(std::size_t bytes) noexcept;
[[nodiscard]] bool is_memory_of_process(const void* address) noexcept;
/// Returns the number of accesses so far in this program.
[[nodiscard]] std::uint64_t accesses_seen() noexcept;

}  // namespace sluice::interleave
