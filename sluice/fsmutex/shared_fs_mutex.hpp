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
#include "sluice/fsmutex/fork_mark.hpp"

// Mutual exclusion between processes, and between hosts that share a file system, over any number of entities
// at once.

namespace sluice::fsmutex {

class lock_attempt;
class shared_fs_mutex;
class wake_up;

enum class algorithm : unsigned char { lock_files, byte_ranges, atomic_append, memory_map };
[[nodiscard]] std::string_view name_of(algorithm which) noexcept;

/// What time it is and where chance comes from; both outlive the mutex they are given to.
struct seams {
    const clock_source* clock;
    random_source* random;  // safe from any thread, if the mutex is used from several

    /// The machine's own.
    [[nodiscard]] static seams of_this_machine() noexcept;
};

/// A request as somebody else sees it.
struct listed_request {
    enum class standing : unsigned char {
        holds,
        waits,
        died,  ///< and whoever comes next is told
    };
    standing what = standing::holds;
    std::uint32_t process_id = 0;  // in its own namespace; 0: not known
    std::string host;
    clock_source::utc_time since{};  // when it was asked for
    std::vector<entity> entities;
};

/// What an algorithm knows of one request. Only the algorithm looks inside.
struct ticket {
    void* state = nullptr;
    std::uint64_t place = 0;
    std::uint64_t mark = 0;
    int descriptor = -1;
    int problem = 0;  // an errno value: why the lock may not have excluded others
    bool owner_died = false;
};

/// Entities that are held, or nothing. Gives them back when it goes.
///
/// Move-only. Outlived by its mutex. Thread safety: one thread at a time, any one. In a forked child it
/// holds nothing: see shared_fs_mutex.
class fs_mutex_guard {
public:
    fs_mutex_guard() noexcept = default;
    fs_mutex_guard(fs_mutex_guard&& other) noexcept
        : mutex_(std::exchange(other.mutex_, nullptr)), ticket_(other.ticket_) {}
    fs_mutex_guard& operator=(fs_mutex_guard&& other) noexcept;
    ~fs_mutex_guard() { (void)unlock(); }

    [[nodiscard]] explicit operator bool() const noexcept { return mutex_ != nullptr; }

    /// Somebody died who held one of these entities exclusively, or who waited for it where that cannot be
    /// told apart: what it protects may be half changed. Readers are told, too, until somebody who holds the
    /// entity exclusively unlocks it, having repaired what needs it; if he dies before, the next one is told.
    [[nodiscard]] bool owner_died() const noexcept { return ticket_.owner_died; }

    /// Returns whether nothing shows that others may have held these entities at the same time. For a holder
    /// that works for long, or before it makes its result public. Errors: EBADMSG if the lock file was
    /// damaged (memory_map) or cut (memory_map; atomic_append on a volume of this host). Blocks: for the file
    /// system. Complexity: a system call.
    [[nodiscard]] result<void> check() const noexcept;

    /// Releases now. Again, or in a forked child: does nothing. Errors: EBADMSG if the lock file was damaged
    /// or cut while this was held, so that others may have held these entities, too (as check()); EBUSY if it
    /// could not be released, and then it is when the mutex is destroyed (memory_map). Blocks: for the file
    /// system, never for another request.
    result<void> unlock() noexcept;

private:
    friend class shared_fs_mutex;
    friend class lock_attempt;
    fs_mutex_guard(shared_fs_mutex& mutex, const ticket& place) noexcept : mutex_(&mutex), ticket_(place) {}

    shared_fs_mutex* mutex_ = nullptr;
    ticket ticket_;
};

/// Locks sets of entities for everybody who opened the same file (or directory) with the same algorithm, in
/// whatever process or, where the algorithm and the file system allow, on whatever host.
///
/// A request is granted as a whole. Who holds entities and asks for more may deadlock with another who does
/// the same; nobody detects that, so give a deadline. Thread safety: one mutex may be used from many threads,
/// which exclude each other like processes. Destroyed after its guards.
///
/// Fork: all locks stay with the parent. The child holds none, and the mutex that it inherits refuses every
/// operation with ENOTRECOVERABLE. Unlocking or destroying the child's copies of guards and mutexes, or
/// ending the child, does not change the file and does not release the parent's locks. A child that needs
/// locks opens the mutex itself; then it and its parent exclude each other. If the parent dies with a lock,
/// the kernel keeps that until the child has destroyed its copies, called exec, or ended: they share
/// descriptors (memory_map alone notices the death). To pass a lock on to a child on purpose:
/// descriptors_of().
class shared_fs_mutex {
public:
    using guard = fs_mutex_guard;

    shared_fs_mutex(const shared_fs_mutex&) = delete;
    shared_fs_mutex& operator=(const shared_fs_mutex&) = delete;
    virtual ~shared_fs_mutex() = default;

    /// Waits until all of `wanted` is granted. Order and repetition do not matter; what is wanted both shared
    /// and exclusive is exclusive.
    ///
    /// Errors: ETIMEDOUT if not granted in time, and then nothing is held; EINVAL if nothing is wanted;
    /// ENOTRECOVERABLE in a forked child;
    /// ENOMEM; EMFILE, ENFILE, ENOLCK, ENOSPC, EIO and others of the file system, as the algorithm says.
    /// Allocates: for more than limits::entities_inline entities, and as the algorithm says. Blocks: until
    /// granted or the deadline passes (within 10 ms), and for the file system.
    [[nodiscard]] result<guard> lock(std::span<const entity> wanted, deadline within = {}) noexcept;
    [[nodiscard]] result<guard> lock(entity wanted, deadline within = {}) noexcept {
        return lock(std::span(&wanted, 1), within);
    }

    /// Takes it or leaves it. Errors: ETIMEDOUT if somebody else holds any of it or waits for it; otherwise
    /// as lock. Blocks: for the file system only.
    [[nodiscard]] result<guard> try_lock(std::span<const entity> wanted) noexcept {
        return lock(wanted, deadline::zero());
    }
    [[nodiscard]] result<guard> try_lock(entity wanted) noexcept { return try_lock(std::span(&wanted, 1)); }

    /// Who holds and who waits, in the order in which they came; a moment later it is different.
    /// Errors: EOPNOTSUPP if the algorithm cannot tell (byte_ranges); ENOMEM; those of reading. Allocates:
    /// the list.
    [[nodiscard]] virtual result<std::vector<listed_request>> list() noexcept {
        return failure({EOPNOTSUPP, "list the holders"});
    }

    /// Returns the descriptor of the lock file, or of the directory of lock_files, or -1 if there is none.
    /// Lifetime: it is the mutex's own, and open as long as the mutex lives.
    [[nodiscard]] virtual int file_descriptor() const noexcept { return -1; }
    /// Returns descriptors that keep `held` locked: as long as any process has one of each open, after this
    /// process has died, too. Empty where a process must live to hold a lock (memory_map, atomic_append):
    /// inherited_lock.hpp is for these. Unlocking ends it for all processes. Errors: ENOMEM. Allocates: the
    /// list. Lifetime: open until `held` is unlocked.
    [[nodiscard]] result<std::vector<int>> descriptors_of(const guard& held) const noexcept;

    [[nodiscard]] virtual algorithm which() const noexcept = 0;
    /// False where every lock is exclusive, however it is wanted.
    [[nodiscard]] virtual bool has_shared_mode() const noexcept { return true; }
    /// Whether requests are granted in the order in which they came.
    [[nodiscard]] virtual bool is_fair() const noexcept = 0;

protected:
    using steady_time = clock_source::steady_time;
    enum class patience : unsigned char { none, some, endless };
    /// What tells when it is worth polling again.
    struct wake_word {
        std::atomic<std::uint32_t>* word = nullptr;
        std::uint32_t expected = 0;
        std::chrono::nanoseconds deaths_after{};  // when to call look_after_deaths(), too; zero: never
    };

    shared_fs_mutex(const seams& from, fork_mark mark) noexcept : seams_(from), mark_(std::move(mark)) {}

    /// False in a child forked from the process that opened the mutex.
    [[nodiscard]] bool is_ours() const noexcept { return mark_.is_ours(); }
    [[nodiscard]] static std::unexpected<error> refuse_after_fork() noexcept {
        return failure({ENOTRECOVERABLE, "use a mutex that was opened before a fork"});
    }

    [[nodiscard]] const clock_source& clock() const noexcept { return *seams_.clock; }
    [[nodiscard]] random_source& random() const noexcept { return *seams_.random; }

private:
    friend class fs_mutex_guard;
    friend class lock_attempt;

    // How an algorithm is written: enter once; until that or poll has said true, wait and poll; leave at
    // last, also after an error of poll. After an error of enter nothing is left to do.

    /// Takes a place in the order of requests; whether it is granted at once. With patience none, ETIMEDOUT
    /// if it would have to wait and that can be told beforehand.
    [[nodiscard]] virtual result<bool> enter(std::span<const entity> wanted, ticket& mine,
                                             patience how) noexcept = 0;
    /// Whether it is granted. Never waits for another request.
    [[nodiscard]] virtual result<bool> poll(std::span<const entity> wanted, ticket& mine) noexcept = 0;
    /// Sleeps until it is worth polling again, at most until `end` (time_point::max(): without end).
    virtual void wait(std::span<const entity> wanted, ticket& mine, steady_time end) noexcept = 0;
    /// For a request that waits without a thread: has `told` woken, once, when it is worth polling again.
    /// Returns false if the algorithm, the volume, or a lack of threads does not permit that; then nothing
    /// has begun, and prepare_wake() applies.
    [[nodiscard]] virtual bool begin_wait(std::span<const entity>, ticket&,
                                          const std::shared_ptr<wake_up>&) noexcept {
        return false;
    }
    /// Follows each begin_wait() that returned true, woken or not, before the ticket is used again. After it
    /// nothing is left of the wait.
    virtual void end_wait(ticket&) noexcept {}
    /// For the others without a thread: where to wait, made ready for that; no word if one must poll.
    [[nodiscard]] virtual wake_word prepare_wake(ticket&) noexcept { return {}; }
    virtual void look_after_deaths(ticket&) noexcept {}
    /// For fs_mutex_guard::check().
    [[nodiscard]] virtual result<void> check(const ticket&) noexcept { return {}; }
    /// For descriptors_of(). May throw std::bad_alloc.
    virtual void add_descriptors(const ticket&, std::vector<int>&) const {}
    /// Releases the request, granted or not. Notes in the ticket why it could not.
    virtual void leave(ticket& mine) noexcept = 0;
    /// In a forked child, instead of leave(): frees the child's copy of a request. Closes its descriptors,
    /// without unlocking, and changes nothing that the parent has, too. Takes no latch: a thread of the
    /// parent may have had it.
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

    seams seams_;
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
