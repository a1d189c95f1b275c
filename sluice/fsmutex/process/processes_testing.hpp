#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "sluice/fsmutex/shared_fs_mutex.hpp"

// For tests: real processes, and memory they share with the test.
namespace sluice::fsmutex {

/// Returns zeroed pages that processes forked from now on share with this one.
[[nodiscard]] void* map_shared(std::size_t bytes);
void unmap_shared(void* memory, std::size_t bytes);

/// A `T` that these processes share. Atomics in it work between them.
template <class T>
class shared_memory {
public:
    shared_memory() : memory_(new(map_shared(sizeof(T))) T) {}
    shared_memory(const shared_memory&) = delete;
    shared_memory& operator=(const shared_memory&) = delete;
    ~shared_memory() { unmap_shared(memory_, sizeof(T)); }
    T* operator->() const { return memory_; }
    T& operator*() const { return *memory_; }

private:
    static_assert(std::is_trivially_destructible_v<T>);
    T* memory_;
};

/// Whether a process begins its own namespaces of process ids, mounts and times; that takes a
/// privilege.
enum class namespaces : bool { shared, own };
/// Returns whether this process may begin namespaces.
[[nodiscard]] bool may_have_own_namespaces();

/// Moves this process into its own namespace of times, 1000 seconds ahead of all others. Returns
/// false without the privilege. Call it before the process has threads.
[[nodiscard]] bool enter_own_times();

/// A process forked to run `body`. It ends without destructors or exit handlers: with 0, or with 1
/// if `body` calls fail_child(). The destructor kills it and waits for it.
class process {
public:
    explicit process(const std::function<void()>& body, namespaces in = namespaces::shared);
    process(process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
    process& operator=(process&& other) noexcept {
        stop();
        id_ = std::exchange(other.id_, -1);
        return *this;
    }
    ~process() { stop(); }

    [[nodiscard]] pid_t id() const { return id_; }
    void send(int signal) const;
    /// Waits for its end. Returns whether it exited normally with status 0.
    bool join();
    /// Kills it, and waits until it is gone.
    void stop();

private:
    pid_t id_;
};

/// Returns a process that has opened a mutex and locked `what`, and holds it until it is stopped. A
/// test whose process does not get the lock ends here.
[[nodiscard]] process process_that_holds(const std::function<std::unique_ptr<shared_fs_mutex>()>& open,
                                         entity what);

/// Prints an error on standard error and ends the process. Called in a forked process.
[[noreturn]] void fail_child(const char* what);

/// Returns whether four processes that repeatedly open, lock, unlock and close a mutex for the
/// given time never held it at once.
[[nodiscard]] bool excludes_while_it_comes_and_goes(
    const std::function<std::unique_ptr<shared_fs_mutex>()>& open, std::chrono::milliseconds how_long);

/// Polls every millisecond until `holds()`, for at most the given time. Returns whether it did.
[[nodiscard]] bool eventually(const std::function<bool()>& holds,
                              std::chrono::milliseconds within = std::chrono::seconds(20));

/// Returns the CPU time of a process until now. Complexity: reads /proc.
[[nodiscard]] std::chrono::milliseconds processor_time_of(pid_t id);
/// Returns whether it currently sleeps in the kernel.
[[nodiscard]] bool is_asleep(pid_t id);

}  // namespace sluice::fsmutex
