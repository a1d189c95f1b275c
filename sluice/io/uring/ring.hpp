#pragma once

#include <liburing.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "sluice/base/result.hpp"

namespace sluice::io::uring {

// Constants of the kernel that Debian's liburing 2.3 does not have. Their presence decides nothing:
// whether the running kernel supports them is checked at run time.
inline constexpr std::uint8_t op_futex_wait = 51;               // 6.7
inline constexpr int futex_of_32_bits = 2;                      // FUTEX2_SIZE_U32
inline constexpr std::uint16_t send_zc_report_usage = 1U << 3;  // 6.2
// In the result of a notification.
inline constexpr std::uint32_t notification_usage_copied = 1U << 31;

/// One io_uring: its two queues, its table of files, its registered buffers. It adds only the order
/// in which set-up flags are tried, and the guarantee that a full queue loses no submission.
///
/// Created disabled, so that it can be created on one thread and used on another: the thread that
/// calls enable() is from then on the only one that may submit, wait and register
/// (IORING_SETUP_SINGLE_ISSUER).
///
/// A shared one has no such owner: any thread may use it, one at a time. The kernel ends a request
/// with ECANCELED when the thread that submitted it has ended.
///
/// Thread safety: none; one thread at a time. Allocates: in open(), and memory that the kernel
/// pins.
class ring {
public:
    struct sizes {
        unsigned submissions;  // entries of the submission queue, a power of two
        unsigned completions;  // entries of the completion queue; the kernel keeps an overflow
        unsigned files;        // entries of the file table; fewer if fewer files may be open
        bool is_shared;        // used by several threads, one at a time
    };

    static constexpr sizes sizes_min{.submissions = 16, .completions = 32, .files = 0, .is_shared = false};

    ring() noexcept = default;
    ring(const ring&) = delete;
    ring& operator=(const ring&) = delete;
    ~ring();

    /// Sets the ring up. If memory does not suffice for these sizes, a quarter of them is tried,
    /// repeatedly down to `sizes_min`: a full queue is submitted early, so smaller queues only cost
    /// more system calls. Errors: EPERM, denied by seccomp or kernel.io_uring_disabled; ENOSYS, not
    /// in this kernel or sandbox; EOPNOTSUPP, a kernel before 5.19; ENOMEM, EMFILE. The error's
    /// operation describes the reason.
    [[nodiscard]] result<void> open(sizes wanted) noexcept;

    /// Replaces the ring in a child after fork(2), which has the descriptor but not the queues.
    /// Errors: as open().
    [[nodiscard]] result<void> open_in_child(sizes wanted) noexcept;

    /// Makes the calling thread the owner. Idempotent. Errors: those of io_uring_register.
    [[nodiscard]] result<void> enable() noexcept;

    /// Returns whether the calling thread is the owner.
    [[nodiscard]] bool is_owner() const noexcept;

    /// Returns whether the kernel supports an opcode (IORING_OP_…).
    [[nodiscard]] bool supports(unsigned opcode) const noexcept {
        return opcode < known_.size() and known_[opcode];
    }
    /// Returns whether submitted requests advance only in our own calls.
    [[nodiscard]] bool defers_work() const noexcept {
        return (ring_.flags & IORING_SETUP_DEFER_TASKRUN) != 0;
    }
    [[nodiscard]] unsigned submission_entries() const noexcept { return ring_.sq.ring_entries; }

    // --- submitting

    /// Returns the next submission entry, to be filled in before the next call; if the queue is
    /// full, its entries are submitted first. Null if the kernel takes no more until completions
    /// are reaped.
    [[nodiscard]] io_uring_sqe* next() noexcept {
        io_uring_sqe* const entry = next_if_room();
        return entry != nullptr ? entry : next_of_full();
    }
    /// The same, but null if the queue is full.
    [[nodiscard]] io_uring_sqe* next_if_room() noexcept {
        // As io_uring_get_sqe for a ring whose entries have the usual size and that no kernel
        // thread polls: the head moves in our calls only.
        io_uring_sq& queue = ring_.sq;
        if (queue.sqe_tail - *queue.khead >= queue.ring_entries) [[unlikely]]
            return nullptr;
        io_uring_sqe& entry = queue.sqes[queue.sqe_tail++ & queue.ring_mask];
        clear(entry);
        return &entry;
    }
    /// Takes back the entry with this user_data, if it has not been submitted: it will have no
    /// effect and no completion. Complexity: linear in the entries not submitted.
    [[nodiscard]] bool take_back(std::uint64_t user_data) noexcept;
    /// Returns the entry's index in the queue, which is unique until it has been submitted.
    [[nodiscard]] std::size_t index_of(const io_uring_sqe& entry) const noexcept {
        return static_cast<std::size_t>(&entry - ring_.sq.sqes);
    }
    [[nodiscard]] bool has_submissions() const noexcept { return io_uring_sq_ready(&ring_) != 0; }

    // --- completing

    /// Submits the queued entries and lets the kernel post completions. A system call only if
    /// either is needed. Errors: EEXIST from another thread than the owner, EBADFD before enable(),
    /// EBADR if the kernel has lost completions for lack of memory. ENOMEM is not an error, see
    /// is_refusing().
    [[nodiscard]] result<void> submit() noexcept;
    /// Lets the kernel post completions, without submitting. A system call.
    void fetch_completions() noexcept;
    /// Waits for a completion, at most `at_most`; duration::max() means no limit. Unlike the other
    /// members, this may be called while another thread uses the ring, if it is shared. Errors: as
    /// submit().
    [[nodiscard]] result<void> wait(std::chrono::nanoseconds at_most) const noexcept;
    /// Submits, and waits for a completion, at most `at_most`, which is less than duration::max().
    [[nodiscard]] result<void> submit_and_wait(std::chrono::nanoseconds at_most) noexcept;
    /// The same without a limit.
    [[nodiscard]] result<void> submit_and_wait() noexcept {
        // As io_uring_submit_and_wait for a ring that no kernel thread polls, but in place: after
        // the call that wakes up, each of its returns would be mispredicted.
        io_uring_sq& queue = ring_.sq;
        queue.sqe_head = queue.sqe_tail;
        IO_URING_WRITE_ONCE(*queue.ktail, queue.sqe_tail);
        const unsigned flags = IORING_ENTER_GETEVENTS | (is_registered_ ? IORING_ENTER_REGISTERED_RING : 0U);
        const int outcome = io_uring_enter(static_cast<unsigned>(ring_.enter_ring_fd),
                                           queue.sqe_tail - *queue.khead, 1, flags, nullptr);
        is_refusing_ = false;
        if (outcome >= 0) [[likely]]
            return {};
        return accepted(outcome);
    }

    [[nodiscard]] bool has_completions() const noexcept { return io_uring_cq_ready(&ring_) != 0; }
    /// Returns whether the kernel keeps completions that did not fit the queue; the next submit()
    /// fetches them.
    [[nodiscard]] bool has_overflowed() const noexcept { return io_uring_cq_has_overflow(&ring_); }

    /// Returns whether the kernel had no memory for the last call: it took no entry of the queue,
    /// and did not wait. See refusal.cpp.
    [[nodiscard]] bool is_refusing() const noexcept { return is_refusing_; }

    /// Takes back every entry that the kernel has not taken and for which `wants(user_data)` is
    /// true: it will have no effect and no completion. Complexity: linear in the entries not taken.
    template <class Wants>
    void take_back_untaken(Wants&& wants) noexcept {
        // The kernel reads entries only inside our calls, so those after its head can be changed.
        for (unsigned at = *ring_.sq.khead; at != ring_.sq.sqe_tail; ++at) {
            io_uring_sqe& entry = ring_.sq.sqes[at & ring_.sq.ring_mask];
            if (entry.user_data != 0 and wants(entry.user_data)) make_idle(entry);
        }
    }

    /// Returns the number of completions in the queue.
    [[nodiscard]] unsigned completions() const noexcept { return io_uring_cq_ready(&ring_); }

    /// Passes up to a number of completions to `handle(user_data, result, flags)`, or all if there
    /// are fewer. `handle` may reap others: each has left the queue before it is passed on.
    template <class Handle>
    void reap(unsigned count, Handle&& handle) noexcept {
        io_uring_cq& queue = ring_.cq;
        for (; count != 0; --count) {
            const unsigned head = *queue.khead;
            // acquire: pairs with the kernel's store, after which the completion is valid.
            if (head == io_uring_smp_load_acquire(queue.ktail)) return;
            const io_uring_cqe completion = queue.cqes[head & queue.ring_mask];
            // release: our reads of it come before the kernel writes there again.
            io_uring_smp_store_release(queue.khead, head + 1);
            handle(completion.user_data, completion.res, completion.flags);
        }
    }

    // --- registered files

    /// Puts a descriptor into the table, replacing the one in the slot. Returns false if the kernel
    /// refuses; the caller then has to use the descriptor itself. A slot keeps its file open until
    /// cleared.
    [[nodiscard]] bool set_file(unsigned slot, int descriptor) noexcept;
    void clear_file(unsigned slot) noexcept { (void)set_file(slot, -1); }
    /// Returns 0 if this kernel would keep a removed file open while older requests are in flight:
    /// a connection closed by its owner would stay up.
    [[nodiscard]] unsigned file_slots() const noexcept { return file_slots_; }

    // --- registered buffers

    /// Pins memory and gives it an index for READ_FIXED and similar requests. Errors: ENOMEM beyond
    /// RLIMIT_MEMLOCK, ENOBUFS beyond `buffer_slots`, EEXIST from another thread than the owner.
    [[nodiscard]] result<unsigned> register_buffer(void* data, std::size_t bytes) noexcept;
    void unregister_buffer(unsigned index) noexcept;

    static constexpr unsigned buffer_slots = 64;

    // --- provided buffers

    /// Registers the shared memory through which the kernel gets buffers: a power of two of
    /// entries, page-aligned. Errors: EEXIST from another thread than the owner; EINVAL, ENOMEM.
    [[nodiscard]] result<void> register_provided(io_uring_buf_ring* shared, unsigned entries,
                                                 std::uint16_t group) noexcept;
    /// Returns false on another thread than the owner: the group stays until the ring is closed.
    bool unregister_provided(std::uint16_t group) noexcept;

    [[nodiscard]] io_uring& raw() noexcept { return ring_; }

private:
    // Clears the rest of its last use. Newer versions of liburing clear it when they provide an
    // entry, older ones when it is prepared, and have no function for it.
    template <class Entry>
    static void clear(Entry& entry) noexcept {
        if constexpr (requires { io_uring_initialize_sqe(&entry); }) io_uring_initialize_sqe(&entry);
    }

    static void make_idle(io_uring_sqe& entry) noexcept;
    io_uring_sqe* next_of_full() noexcept;
    [[nodiscard]] result<void> accepted(int outcome) noexcept;
    [[nodiscard]] static result<void> judged(int outcome) noexcept;
    [[nodiscard]] int set_up(sizes wanted) noexcept;
    result<void> set_up_within_memory(sizes wanted) noexcept;
    result<void> probe() noexcept;

    io_uring ring_{};
    bool is_open_ = false;
    bool is_enabled_ = false;
    bool is_refusing_ = false;
    bool is_shared_ = false;
    bool is_registered_ = false;  // with the owner: `enter_ring_fd` is an index among its rings
    unsigned file_slots_ = 0;
    std::uint64_t buffers_used_ = 0;  // a bit for each slot
    bool has_buffer_table_ = false;
    const void* owner_ = nullptr;
    std::array<bool, 64> known_{};
};

}  // namespace sluice::io::uring
