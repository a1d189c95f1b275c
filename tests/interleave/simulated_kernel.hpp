#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"

// The kernel that the processes of a scenario see: thread i of it is process i. The program under test is the
// one that is shipped: the linker leads its system calls here (--wrap, see CMakeLists.txt), and whatever
// touches mapped memory is compiled to tell memory_hooks.cpp. Each call is a step of the scheduler.
//
// What is like Linux: files in memory, with one writer at a time, readers who may see half of what is
// written, and kills that leave whole pages; locks of open file descriptions; futexes; names, and files
// without any; what /proc says of processes. Memory allocated by a process is gone with its schedule, so
// nothing is unwound when it is killed.

namespace sluice::interleave {

class simulated_kernel {
public:
    simulated_kernel();
    simulated_kernel(const simulated_kernel&) = delete;
    simulated_kernel& operator=(const simulated_kernel&) = delete;
    ~simulated_kernel();

    /// What a process does before the exploration begins: nobody else takes a step meanwhile.
    void as(unsigned process, const std::function<void()>& body);
    /// Closes all it has open. Its memory stays, for nobody.
    void kill(unsigned process);
    /// Not in the middle of a page that it writes: the kernel does not stop there.
    [[nodiscard]] bool may_be_killed(unsigned process) const;

    [[nodiscard]] const clock_source& clock() const;
    [[nodiscard]] random_source& random(unsigned process);
    /// Of files that have a name.
    [[nodiscard]] std::size_t file_count() const;
    /// Of the file made last.
    [[nodiscard]] const std::byte* content() const;
    [[nodiscard]] std::size_t content_bytes() const;
    /// System calls so far, of all processes.
    [[nodiscard]] std::uint64_t calls() const;

    /// How many more bytes can be written behind the ends of files until there is no room.
    void leave_room(std::uint64_t bytes);
    /// The volume is one that other hosts can have mounted, as over NFS; each process is on a host of its
    /// own. What is removed while its remover has it open keeps a link until he has closed it; then it is
    /// stale to others.
    void share_with_hosts();
    /// Whoever looks at a file finds it empty, though it can be read: for a program that must not trust that.
    void hide_sizes();
    /// So many, given to the processes in turns; there is one until then.
    void give_processors(unsigned count);
    /// How often a signal may interrupt a wait for a lock.
    void send_signals(unsigned count);

    struct state;  // simulated_machine.hpp

private:
    std::unique_ptr<state> state_;
};

/// Accesses to mapped memory, about to happen. Others take steps before atomic ones only; a kill may come
/// before any that changes something.
void note_access(const volatile void* address, std::size_t bytes, bool is_write) noexcept;
void note_atomic_load(const volatile void* address, std::uint64_t value) noexcept;
/// A copy about to be made of what others may be writing: one look.
void note_copy(const volatile void* address) noexcept;
void note_atomic_change(const volatile void* address, std::size_t bytes) noexcept;
/// Memory that is gone with the schedule; null if it is no process that asks.
[[nodiscard]] void* allocate_for_process(std::size_t bytes) noexcept;
[[nodiscard]] bool is_memory_of_process(const void* address) noexcept;
/// How many there were in this program.
[[nodiscard]] std::uint64_t accesses_seen() noexcept;

}  // namespace sluice::interleave
