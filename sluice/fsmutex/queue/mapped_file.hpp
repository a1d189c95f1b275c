#pragma once

#include <memory>

#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/fsmutex/process/process_identity.hpp"
#include "sluice/fsmutex/queue/fault_guard.hpp"
#include "sluice/fsmutex/queue/mapped_queue.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/file/file_handle.hpp"

// Internal to fsmutex: the mapped file of memory_map, its open instances, and the latch on its
// queue.

namespace sluice::fsmutex {

/// The mapped file of a mutex. The file is untrusted: other users can change or truncate it at any
/// moment. An operation that finds damage records it in the file, for all users, permanently: the
/// file is not used any more, and its last user removes it. Locks held at that time may not exclude
/// others.
///
/// Thread safety: any thread, except opening and destruction.
class mapped_file {
public:
    /// Opens or creates the file. Errors: as file_handle::open; EOPNOTSUPP if other hosts can have
    /// the volume mounted; EBADMSG if it has another format, or is damaged and still in use;
    /// ENOSPC; EBUSY if `mapped::instances_max` have it open, or as lock(); ETIMEDOUT as
    /// atomic_append.
    [[nodiscard]] static result<std::unique_ptr<mapped_file>> open(const io::path_handle& base,
                                                                   io::path_view path,
                                                                   const dependencies& from,
                                                                   const file_access& access) noexcept;
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    /// Removes the file if no other process has it open, and its content is not needed or is
    /// damaged.
    ~mapped_file();

    /// Makes the destruction leave the file as it is, in a forked child. The kernel could not
    /// distinguish the child's locks from its parent's.
    void leave_to_parent() noexcept { instance_ = mapped::instances_max; }
    [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
    [[nodiscard]] std::uint32_t instance() const noexcept { return instance_; }
    /// Returns the process id of an instance, or 0 if there is no such instance.
    [[nodiscard]] std::uint32_t process_of(std::uint32_t index) const noexcept {
        return index < mapped::instances_max ? memory_->instances[index].process_id : 0;
    }
    [[nodiscard]] mapped_queue queue() const noexcept { return mapped_queue(*memory_); }

    /// Acquires the latch, for the few instructions of an operation. Takes it over from a holder
    /// that died, and then rebuilds the queue. Errors: EBADMSG if the file is damaged; EBUSY if the
    /// latch is not released within limits::latch_wait_max.
    [[nodiscard]] result<void> lock() noexcept {
        std::uint32_t expected = 0;
        // acquire: pairs with the release of unlock().
        if (memory_->latch.compare_exchange_strong(expected, latch_word_, std::memory_order_acquire,
                                                   std::memory_order_relaxed)) [[likely]]
            return {};
        return lock_slow_path();
    }
    /// Releases the latch after the operations of `used`. Errors: EBADMSG if the file is damaged;
    /// then their results are meaningless.
    [[nodiscard]] result<void> unlock(const mapped_queue& used) noexcept {
        // A fault is noted before this: otherwise the compiler may access the queue later.
        std::atomic_signal_fence(std::memory_order_seq_cst);
        const bool is_intact = not used.is_damaged() and not is_damaged();
        std::uint32_t seen = latch_word_;
        // release: pairs with the acquire of the next lock().
        if (is_intact and memory_->latch.compare_exchange_strong(seen, 0, std::memory_order_release,
                                                                 std::memory_order_relaxed)) [[likely]]
            return {};
        return unlock_slow_path(is_intact);
    }

    /// Returns whether a user has found damage. Complexity: one load.
    [[nodiscard]] bool is_damaged() const noexcept { return mapped::read_once(memory_->is_damaged) != 0; }
    /// Records damage for all users. Returns EBADMSG.
    std::unexpected<error> report_damage() noexcept;
    /// Returns whether the file is too short. Complexity: a system call.
    [[nodiscard]] bool is_cut() const noexcept;

    /// Finds instances that died and removes their requests. Returns the number of dead instances.
    /// Makes a few system calls for each instance. The caller does not hold the latch; returns
    /// early if it is not released.
    unsigned reap_dead_instances() noexcept;
    void wake(const mapped_queue::wake_list& list) noexcept;
    /// Records a request that could not be released. It is reported as a request of a dead process
    /// when the file is closed.
    void record_orphan() noexcept { has_orphans_.store(true, std::memory_order_relaxed); }
    /// Sleeps while the word holds `expected`, at most for the given time. Returns false if the
    /// time expired.
    static bool sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::chrono::nanoseconds at_most) noexcept;

private:
    mapped_file(io::file_handle opened, const dependencies& from) noexcept;

    [[nodiscard]] result<void> enter_file(const process_identity& self) noexcept;
    [[nodiscard]] result<void> prepare(const process_identity& self) noexcept;
    [[nodiscard]] result<void> map() noexcept;
    [[nodiscard]] result<void> claim_instance(const process_identity& self) noexcept;
    void release_instance() noexcept;
    [[nodiscard]] bool is_dead(std::uint32_t other) const noexcept;
    [[nodiscard]] bool has_holder_died(std::uint32_t latch_word) const noexcept;
    [[nodiscard]] result<void> lock_slow_path() noexcept;
    [[nodiscard]] result<void> unlock_slow_path(bool is_intact) noexcept;
    [[nodiscard]] result<void> take_over_latch() noexcept;
    [[nodiscard]] static bool is_latch_word(std::uint32_t word) noexcept;
    void remove_if_unused() noexcept;

    io::file_handle file_;  // its locks show that this instance is alive
    dependencies dependencies_;
    mapped::memory* memory_ = nullptr;
    fault_guard guard_;
    std::uint32_t instance_ = mapped::instances_max;
    std::uint32_t latch_word_ = 0;  // the latch while this holds it: generation and slot, plus one
    std::uint64_t namespaces_ = 0;
    std::atomic<bool> has_orphans_ = false;  // relaxed: read when no other thread uses it
};

}  // namespace sluice::fsmutex
