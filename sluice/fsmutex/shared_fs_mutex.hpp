#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/deadline.hpp"
#include "sluice/base/random.hpp"
#include "sluice/base/result.hpp"
#include "sluice/fsmutex/entity.hpp"
#include "sluice/fsmutex/process/fork_mark.hpp"

// Mutual exclusion between processes, and between hosts that share a file system, over any number
// of entities at once.

namespace sluice::fsmutex {

class lock_attempt;
class shared_fs_mutex;
class wake_up;

enum class algorithm : unsigned char { lock_files, byte_ranges, atomic_append, memory_map };
[[nodiscard]] std::string_view name_of(algorithm which) noexcept;

/// The clock and the random source. Both outlive the mutex that uses them.
struct dependencies {
    const clock_source* clock;
    random_source* random;  // safe from any thread, if the mutex is used from several

    /// Returns those of the machine.
    [[nodiscard]] static dependencies of_this_machine() noexcept;
};

/// A request as other processes see it.
struct listed_request {
    enum class state : unsigned char {
        holds,
        waits,
        died,  ///< reported to the next holder
    };
    state what = state::holds;
    std::uint32_t process_id = 0;  // in its own namespace; 0: unknown
    std::string host;
    clock_source::utc_time since{};  // the time of the request
    std::vector<entity> entities;
};

/// The algorithm's record of one request. Only the algorithm uses its members.
struct ticket {
    void* state = nullptr;
    std::uint64_t place = 0;
    std::uint64_t mark = 0;
    int descriptor = -1;
    int problem = 0;  // an errno value: why the lock may not have excluded others
    bool owner_died = false;
};

/// Entities that are held, or none. The destructor releases them.
///
/// Move-only. The mutex outlives it. Thread safety: one thread at a time, any one. In a forked
/// child it holds nothing: see shared_fs_mutex.
class fs_mutex_guard {
public:
    fs_mutex_guard() noexcept = default;
    fs_mutex_guard(fs_mutex_guard&& other) noexcept
        : mutex_(std::exchange(other.mutex_, nullptr)), ticket_(other.ticket_) {}
    fs_mutex_guard& operator=(fs_mutex_guard&& other) noexcept;
    ~fs_mutex_guard() { (void)unlock(); }

    [[nodiscard]] explicit operator bool() const noexcept { return mutex_ != nullptr; }

    /// Returns whether a process died that held one of these entities exclusively, or that waited
    /// for one where the two cannot be distinguished: the protected data may be inconsistent.
    /// Shared holders also get this report. It ends when an exclusive holder of the entity unlocks
    /// it, after it has repaired the data; if that holder dies before, the next one gets the
    /// report.
    [[nodiscard]] bool owner_died() const noexcept { return ticket_.owner_died; }

    /// Returns whether nothing shows that others may have held these entities at the same time. For
    /// a holder that works for long, or before it publishes its result. Errors: EBADMSG if the lock
    /// file was damaged (memory_map) or truncated (memory_map; atomic_append on a volume of this
    /// host). Blocks: for the file system. Complexity: a system call.
    [[nodiscard]] result<void> check() const noexcept;

    /// Releases now. A second call, or a call in a forked child, does nothing. Errors: EBADMSG if
    /// the lock file was damaged or truncated while this was held, so that others may also have
    /// held these entities (as check()); EBUSY if the release failed, and then it happens when the
    /// mutex is destroyed (memory_map). Blocks: for the file system, never for another request.
    result<void> unlock() noexcept;

private:
    friend class shared_fs_mutex;
    friend class lock_attempt;
    fs_mutex_guard(shared_fs_mutex& mutex, const ticket& place) noexcept : mutex_(&mutex), ticket_(place) {}

    shared_fs_mutex* mutex_ = nullptr;
    ticket ticket_;
};

/// A lock of sets of entities. It excludes all users that open the same file (or directory) with
/// the same algorithm, in any process or, where the algorithm and the file system allow, on any
/// host.
///
/// A request is granted as a whole. A thread that holds entities and requests more may deadlock
/// with another that does the same. There is no deadlock detection, so pass a deadline. Thread
/// safety: one mutex may be used from many threads, which exclude each other like processes.
/// Destroyed after its guards.
///
/// Fork: all locks stay with the parent. The child holds none, and the mutex that it inherits
/// refuses every operation with ENOTRECOVERABLE. Unlocking or destroying the child's copies of
/// guards and mutexes, or ending the child, does not change the file and does not release the
/// parent's locks. A child that needs locks opens the mutex itself; then it and its parent exclude
/// each other. If the parent dies with a lock, the kernel keeps that until the child has destroyed
/// its copies, called exec, or ended: they share descriptors (memory_map alone notices the death).
/// To pass a lock on to a child on purpose: descriptors_of().
class shared_fs_mutex {
public:
    using guard = fs_mutex_guard;

    shared_fs_mutex(const shared_fs_mutex&) = delete;
    shared_fs_mutex& operator=(const shared_fs_mutex&) = delete;
    virtual ~shared_fs_mutex() = default;

    /// Waits until all of `wanted` is granted. Order and repetition do not matter; an entity
    /// requested both shared and exclusive is exclusive.
    ///
    /// Errors: ETIMEDOUT if not granted in time, and then nothing is held; EINVAL if `wanted` is
    /// empty; ENOTRECOVERABLE in a forked child; ENOMEM; EMFILE, ENFILE, ENOLCK, ENOSPC, EIO and
    /// others of the file system, as documented for the algorithm. Allocates: for more than
    /// limits::entities_inline entities, and as documented for the algorithm. Blocks: until granted
    /// or the deadline passes (within 10 ms), and for the file system.
    [[nodiscard]] result<guard> lock(std::span<const entity> wanted, deadline within = {}) noexcept;
    [[nodiscard]] result<guard> lock(entity wanted, deadline within = {}) noexcept {
        return lock(std::span(&wanted, 1), within);
    }

    /// Acquires `wanted` without a wait. Errors: ETIMEDOUT if another request holds any of it or
    /// waits for it; otherwise as lock. Blocks: for the file system only.
    [[nodiscard]] result<guard> try_lock(std::span<const entity> wanted) noexcept {
        return lock(wanted, deadline::zero());
    }
    [[nodiscard]] result<guard> try_lock(entity wanted) noexcept { return try_lock(std::span(&wanted, 1)); }

    /// Returns holders and waiters in arrival order. The result is a snapshot. Errors: EOPNOTSUPP
    /// if the algorithm does not record holders (byte_ranges); ENOMEM; those of reading. Allocates:
    /// the list.
    [[nodiscard]] virtual result<std::vector<listed_request>> list() noexcept {
        return failure({EOPNOTSUPP, "list the holders"});
    }

    /// Returns the descriptor of the lock file, or of the directory of lock_files, or -1 if there
    /// is none. Lifetime: it belongs to the mutex, and is open as long as the mutex exists.
    [[nodiscard]] virtual int file_descriptor() const noexcept { return -1; }
    /// Returns descriptors that keep `held` locked: as long as any process has one of each open,
    /// also after this process has died. Returns an empty list where a process must live to hold a
    /// lock (memory_map, atomic_append): inherited_lock.hpp is for these. Unlocking ends it for all
    /// processes. Errors: ENOMEM. Allocates: the list. Lifetime: open until `held` is unlocked.
    [[nodiscard]] result<std::vector<int>> descriptors_of(const guard& held) const noexcept;

    [[nodiscard]] virtual algorithm which() const noexcept = 0;
    /// Returns false where every lock is exclusive, regardless of the requested mode.
    [[nodiscard]] virtual bool has_shared_mode() const noexcept { return true; }
    /// Returns whether requests are granted in arrival order.
    [[nodiscard]] virtual bool is_fair() const noexcept = 0;

protected:
    using steady_time = clock_source::steady_time;
    enum class wait_policy : unsigned char { none, some, endless };
    /// A futex word that changes when it is worth polling again.
    struct wake_word {
        std::atomic<std::uint32_t>* word = nullptr;
        std::uint32_t expected = 0;
        // When to call check_for_deaths() also; zero: never.
        std::chrono::nanoseconds deaths_after{};
    };

    shared_fs_mutex(const dependencies& from, fork_mark mark) noexcept
        : dependencies_(from), mark_(std::move(mark)) {}

    /// Returns false in a child forked from the process that opened the mutex.
    [[nodiscard]] bool is_ours() const noexcept { return mark_.is_ours(); }
    [[nodiscard]] static std::unexpected<error> refuse_after_fork() noexcept {
        return failure({ENOTRECOVERABLE, "use a mutex that was opened before a fork"});
    }

    [[nodiscard]] const clock_source& clock() const noexcept { return *dependencies_.clock; }
    [[nodiscard]] random_source& random() const noexcept { return *dependencies_.random; }

private:
    friend class fs_mutex_guard;
    friend class lock_attempt;

    // How to implement an algorithm: enter once; until enter or poll has returned true, wait and
    // poll; leave at the end, also after an error of poll. An error of enter needs no cleanup.

    /// Queues the request. Returns whether it is granted at once. With patience none: ETIMEDOUT if
    /// it would have to wait and the algorithm can check that beforehand.
    [[nodiscard]] virtual result<bool> enter(std::span<const entity> wanted, ticket& mine,
                                             wait_policy how) noexcept = 0;
    /// Returns whether the request is granted. Never waits for another request.
    [[nodiscard]] virtual result<bool> poll(std::span<const entity> wanted, ticket& mine) noexcept = 0;
    /// Sleeps until it is worth polling again, at most until `end`
    /// (time_point::max(): without end).
    virtual void wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept = 0;
    /// Begins a wait without a thread: `waker` is woken, once, when it is worth polling again.
    /// Returns false if the algorithm, the volume, or a lack of threads does not permit that; then
    /// nothing has begun, and prepare_wake() applies.
    [[nodiscard]] virtual bool begin_wait(std::span<const entity>, ticket&,
                                          const std::shared_ptr<wake_up>&) noexcept {
        return false;
    }
    /// Ends a wait. Follows each begin_wait() that returned true, whether woken or not, before the
    /// ticket is used again. Afterwards the wait uses no resources.
    virtual void end_wait(ticket&) noexcept {}
    /// Prepares the wake word on which other requests without a thread wait. Returns an empty one
    /// if the caller must poll.
    [[nodiscard]] virtual wake_word prepare_wake(ticket&) noexcept { return {}; }
    virtual void check_for_deaths(ticket&) noexcept {}
    /// Implements fs_mutex_guard::check().
    [[nodiscard]] virtual result<void> check(const ticket&) noexcept { return {}; }
    /// Implements descriptors_of(). May throw std::bad_alloc.
    virtual void add_descriptors(const ticket&, std::vector<int>&) const {}
    /// Releases the request, granted or not. Records a failure in the ticket.
    virtual void leave(ticket& mine) noexcept = 0;
    /// Frees a forked child's copy of a request, instead of leave(). Closes its descriptors without
    /// unlocking, and changes nothing that the parent shares. Takes no latch: a thread of the
    /// parent may have held it.
    virtual void drop_copy(ticket& mine) noexcept = 0;
    void end(ticket& mine) noexcept {
        if (is_ours())
            leave(mine);
        else
            drop_copy(mine);
    }

    [[nodiscard]] result<guard> lock_unordered(std::span<const entity> wanted,
                                               const deadline& within) noexcept;
    [[nodiscard]] result<bool> wait_for_grant(std::span<const entity> wanted, ticket& mine,
                                              const deadline& within) noexcept;

    dependencies dependencies_;
    fork_mark mark_;
};

inline result<void> fs_mutex_guard::unlock() noexcept {
    if (mutex_ == nullptr) return {};
    std::exchange(mutex_, nullptr)->end(ticket_);
    if (ticket_.problem != 0) return failure({ticket_.problem, "unlock entities"});
    return {};
}

inline result<void> fs_mutex_guard::check() const noexcept {
    if (mutex_ == nullptr or not mutex_->is_ours()) return {};
    return mutex_->check(ticket_);
}

inline fs_mutex_guard& fs_mutex_guard::operator=(fs_mutex_guard&& other) noexcept {
    if (this == &other) return *this;
    (void)unlock();
    mutex_ = std::exchange(other.mutex_, nullptr);
    ticket_ = other.ticket_;
    return *this;
}

}  // namespace sluice::fsmutex
