#pragma once

#include <optional>
#include <span>
#include <utility>

#include "sluice/base/deadline.hpp"
#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"

namespace sluice::fsmutex {

/// A kernel lock that belongs to an open file description. Processes that inherit the descriptor
/// hold it together: it ends when the last of them has closed it, or with release().
///
/// It complements a request of a mutex whose locks need a living process. Each user acquires it
/// after the request was granted. So it is contended only if a previous holder died and left
/// processes running, or if a program uses flock(2).
///
/// Invariants:
/// 1. A request for the whole file (entity::of_name("") alone), on a volume of this host, is
///    flock(2) of the file. So it excludes programs that use only flock(2).
/// 2. Any other request locks one byte for each entity, at its number modulo 2^61: the mutex
///    files use the bytes from 2^61 on. flock(2) on a network file system locks all bytes, so
///    it is not used there.
/// 3. While the description is open, or until allow_removal(), no user of the mutex removes the
///    file: otherwise the next user would create another one and not see the lock.
///
/// Move-only. Thread safety: one thread at a time.
class inherited_lock {
public:
    /// Opens a description of the file of `mutex` for a request for `wanted` that it granted.
    /// Errors: EMFILE, ENFILE, ENOMEM; ENOENT without /proc; those of locking. Allocates: the
    /// entities.
    [[nodiscard]] static result<inherited_lock> beside(const shared_fs_mutex& mutex,
                                                       std::span<const entity> wanted) noexcept;
    /// Returns a lock that is flock(2) of the file of `descriptor`. Takes ownership of the
    /// descriptor.
    [[nodiscard]] static inherited_lock of_whole_file(int descriptor, lock_mode how) noexcept;

    inherited_lock(inherited_lock&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)),
          whole_file_(other.whole_file_),
          bytes_(std::move(other.bytes_)),
          has_flock_(other.has_flock_),
          keeps_file_(other.keeps_file_) {}
    inherited_lock& operator=(inherited_lock&&) = delete;
    /// Closes the descriptor. The lock goes with it, unless another process has it open.
    ~inherited_lock();

    /// Acquires the lock. Errors: ETIMEDOUT if not granted in time, and then nothing is locked;
    /// ENOLCK, EOPNOTSUPP, EBADF and others of flock(2) and fcntl(2). Blocks: until granted or the
    /// deadline passes (within 16 ms).
    [[nodiscard]] result<void> acquire(deadline within, const dependencies& from) noexcept;
    /// Unlocks, also for all processes that have inherited the lock.
    void release() noexcept;
    /// Lets the last user of the mutex remove the file, unless another program has locked it by
    /// flock(2). Call it after release() and before the mutex is destroyed. Destroy this lock last:
    /// another flock(2) waits for it and then finds that the file has no name.
    void allow_removal() noexcept;

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    /// Returns whether the lock is flock(2) of the whole file.
    [[nodiscard]] bool is_of_whole_file() const noexcept { return whole_file_.has_value(); }
    /// Returns whether acquire() locks anything. If not, the descriptors of the mutex do:
    /// descriptors_of().
    [[nodiscard]] bool locks() const noexcept { return whole_file_.has_value() or bytes_.has_value(); }

private:
    explicit inherited_lock(int descriptor) noexcept : descriptor_(descriptor) {}

    [[nodiscard]] std::span<const entity> bytes() const noexcept {
        return bytes_ ? bytes_->view() : std::span<const entity>();
    }
    [[nodiscard]] result<bool> try_acquire() noexcept;
    [[nodiscard]] int wait_in_kernel() noexcept;

    int descriptor_;
    std::optional<lock_mode> whole_file_;
    std::optional<entity_set> bytes_;
    bool has_flock_ = false;  // a lock of the whole file is not a lock of all its bytes
    bool keeps_file_ = false;
};

/// flock(2). Both return 0 or the error: EAGAIN (the first function only) if another description
/// has the lock.
[[nodiscard]] int try_lock_whole_file(int descriptor, lock_mode how) noexcept;
[[nodiscard]] int lock_whole_file(int descriptor, lock_mode how) noexcept;

}  // namespace sluice::fsmutex
