#pragma once

#include <memory>

#include "sluice/fsmutex/lock_file.hpp"
#include "sluice/fsmutex/mapped_queue.hpp"
#include "sluice/fsmutex/process_identity.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/file_handle.hpp"

// Internal to fsmutex: the mapped file of memory_map, who has it open, and the latch on its queue.

namespace sluice::fsmutex {

/// Thread safety: any thread, except opening and destruction.
class mapped_file {
public:
    /// Errors: as file_handle::open; EOPNOTSUPP if other hosts can have the volume mounted; EBADMSG if it is
    /// something else; ENOSPC; EBUSY if `mapped::instances_max` have it open; ETIMEDOUT as atomic_append.
    [[nodiscard]] static result<std::unique_ptr<mapped_file>> open(const io::path_handle& base,
                                                                   io::path_view path, const seams& from,
                                                                   const file_access& access) noexcept;
    mapped_file(const mapped_file&) = delete;
    mapped_file& operator=(const mapped_file&) = delete;
    /// Removes the file if nobody else has it open and nothing in it matters to anybody.
    ~mapped_file();

    /// In a forked child: its destruction leaves the file as it is. The kernel could not tell the child's locks
    /// from its parent's.
    void leave_to_parent() noexcept { instance_ = mapped::instances_max; }
    [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
    [[nodiscard]] std::uint32_t instance() const noexcept { return instance_; }
    [[nodiscard]] const mapped::instance& instance_at(std::uint32_t index) const noexcept {
        return memory_->instances[index];
    }
    [[nodiscard]] mapped_queue queue() const noexcept { return mapped_queue(*memory_); }

    /// Keeps all others out of the queue for the few instructions an operation takes. Takes the latch from a
    /// holder that died, and then makes the queue whole again.
    void lock() noexcept;
    void unlock() noexcept;

    /// Finds instances that died and takes their requests out. How many there were. A few system calls for
    /// each instance; without the latch.
    unsigned bury_the_dead() noexcept;
    void wake(const mapped_queue::wake_list& list) noexcept;
    /// Sleeps while the word holds `expected`, at most that long; false if the time was up.
    static bool sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                      std::chrono::nanoseconds at_most) noexcept;

private:
    mapped_file(io::file_handle opened, const seams& from) noexcept;

    [[nodiscard]] result<void> enter_file(const process_identity& self) noexcept;
    [[nodiscard]] result<void> prepare(const process_identity& self) noexcept;
    [[nodiscard]] result<void> map() noexcept;
    [[nodiscard]] result<void> claim_instance(const process_identity& self) noexcept;
    void release_instance() noexcept;
    [[nodiscard]] bool is_dead(std::uint32_t other) const noexcept;
    [[nodiscard]] bool has_holder_died(std::uint32_t latch_word) const noexcept;
    void lock_slowly() noexcept;

    io::file_handle file_;  // its locks say that this instance lives
    seams seams_;
    mapped::memory* memory_ = nullptr;
    std::uint32_t instance_ = mapped::instances_max;
    std::uint32_t latch_word_ = 0;  // what the latch holds when we do: generation and place, plus one
    std::uint64_t namespaces_ = 0;
};

}  // namespace sluice::fsmutex
