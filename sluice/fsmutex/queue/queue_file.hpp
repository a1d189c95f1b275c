#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "sluice/fsmutex/process/kernel_lock.hpp"
#include "sluice/fsmutex/process/lock_file.hpp"
#include "sluice/fsmutex/queue/queue_format.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/sync/small_mutex.hpp"

// Internal to fsmutex: the operations on the file of atomic_append: it is opened, scanned, tidied
// and, by the last process that closes it, removed. docs/formats/fs_mutex_file.md defines its bytes
// and locks.

namespace sluice::fsmutex {

/// Bytes far after the slots, which are locked and never written.
namespace queue_bytes {
inline constexpr kernel_lock::range everything{.first = 0, .length = 0};
inline constexpr std::uint64_t slots_end = std::uint64_t{1} << 61;
inline constexpr kernel_lock::range in_use{.first = slots_end,
                                           .length = 1};  // shared: each process that has it open
inline constexpr kernel_lock::range opening{.first = slots_end + 1,
                                            .length = 1};  // exclusive: opening, closing
inline constexpr kernel_lock::range tidying{.first = slots_end + 2,
                                            .length = 1};  // exclusive: changing the header
inline constexpr kernel_lock::range appending{.first = slots_end + 3,
                                              .length = 1};  // exclusive: appending to a ring
inline constexpr std::uint64_t first_request = std::uint64_t{1} << 62;
inline constexpr std::uint64_t id_mask = (std::uint64_t{1} << 61) - 1;
/// The lowest bits of an id: its number among those that were locked at once.
inline constexpr unsigned count_bits = 4;
/// The next bits: the CPU of the request, a hint for which process it may help to run.
inline constexpr std::uint64_t processor_mask = 0xff;
inline constexpr std::uint64_t random_mask =
    id_mask & ~(processor_mask << count_bits | ((1U << count_bits) - 1));
[[nodiscard]] constexpr std::uint64_t processor_of(std::uint64_t id) noexcept {
    return id >> count_bits & processor_mask;
}
inline constexpr kernel_lock::range all_requests{.first = first_request, .length = id_mask + 1};
/// Returns the byte of a request: exclusive from before the request is appended until after it is
/// erased. If it is free and the slot is still in the file, the request is dead.
[[nodiscard]] constexpr kernel_lock::range of_request(std::uint64_t id) noexcept {
    return {.first = first_request + (id & id_mask), .length = 1};
}
/// Returns the bytes of all requests of one lane with ids from this one on: one system call locks
/// all of them.
[[nodiscard]] constexpr kernel_lock::range of_requests_from(std::uint64_t first_id) noexcept {
    return {.first = first_request + (first_id & id_mask), .length = 1U << count_bits};
}
}  // namespace queue_bytes

/// The positions of the live slots at some moment. Stays true forever, because slots only die or
/// are appended.
struct queue_view {
    struct live_page {
        std::uint64_t place;
        std::array<std::byte, queue_format::page_bytes> content;
    };
    std::uint64_t generation = 0;
    std::uint64_t first_known_good = queue_format::page_bytes;
    std::vector<std::shared_ptr<const live_page>> live_pages;
};

/// The open file of a queue. Slots have positions (`place`), which only grow: they are in the order
/// of the requests, and are never reused. A *live page* is a page with a live slot far before the
/// end.
///
/// Usually the position is the offset in the file. Where several hosts share the file, or the
/// blocks of dead slots cannot be freed, the file is a ring: positions wrap around in its bytes,
/// and each slot states its position.
/// 1. In a ring, a slot is written where all bytes are zero, while the byte for appending is
///    locked. So live slots stay, whatever their age, and their owners may erase them without that
///    lock.
/// 2. A process that changes the slot of another one, because that is dead, holds that lock from
///    the check to the write. Otherwise the owner may have erased the slot in between, and the
///    bytes may be a new request's.
/// 3. A reader of a position treats a slot with another position as free: that slot is younger than
///    the reader's, or is on a live page.
///
/// Thread safety: any thread, except opening and destruction. Allocates: views, when the header has
/// changed.
class queue_file {
public:
    /// How a slot is appended: by the kernel's atomic append, or to a ring, under a lock.
    enum class append_method : bool { atomic, ring };

    /// Opens or creates the file. Errors: as file_handle::open; ETIMEDOUT if others are opening or
    /// closing it for seconds; EBADMSG if it has another format, or was truncated while others have
    /// it open; ENOLCK, EOPNOTSUPP.
    [[nodiscard]] static result<std::unique_ptr<queue_file>> open(const io::path_handle& base,
                                                                  io::path_view path,
                                                                  const dependencies& from,
                                                                  const file_access& access) noexcept;
    queue_file(const queue_file&) = delete;
    queue_file& operator=(const queue_file&) = delete;
    /// Removes the file if no other process has it open and no slot is live.
    ~queue_file();
    /// Makes the destruction leave the file as it is, in a forked child. The kernel could not
    /// distinguish the child's locks from its parent's.
    void leave_to_parent() noexcept { (void)file_.close(); }

    [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
    [[nodiscard]] append_method method() const noexcept { return method_; }
    /// Returns whether the kernel wakes waiters for a lock of this file.
    [[nodiscard]] bool wakes_waiters() const noexcept { return wakes_waiters_; }
    /// Returns whether a wait for a lock of this file can be ended early.
    [[nodiscard]] bool ends_waits() const noexcept { return ends_waits_; }
    /// Returns the time since the file was created, for the records.
    [[nodiscard]] std::uint64_t age_us() const noexcept;
    [[nodiscard]] std::uint64_t created_s() const noexcept { return created_s_; }

    /// Returns the position before which this process knows that no slot is live, except on the
    /// live pages.
    [[nodiscard]] std::uint64_t seen_dead_before() const noexcept {
        return seen_dead_before_.load(std::memory_order_relaxed);
    }
    void record_dead_before(std::uint64_t place) noexcept;
    [[nodiscard]] std::shared_ptr<const queue_view> view() noexcept;
    /// Reads the header. Errors: EIO, ENOMEM.
    [[nodiscard]] result<std::shared_ptr<const queue_view>> refreshed_view() noexcept;

    /// Returns the position after the last slot; in a ring, perhaps after a later one. Errors: EIO,
    /// ESTALE; EBADMSG if the file is damaged.
    [[nodiscard]] result<std::uint64_t> end() const noexcept;
    /// Reads the bytes at a position; at the end fewer than requested.
    [[nodiscard]] result<bytes_view> read(std::uint64_t place, std::span<std::byte> into) const noexcept;
    /// Decodes bytes that were read at a position.
    [[nodiscard]] queue_format::slot decode_at(std::uint64_t place, bytes_view bytes) const noexcept;
    /// Reads a slot, repeatedly while it is torn. Errors: EBADMSG if it stays torn.
    [[nodiscard]] result<queue_format::slot> read_slot(std::uint64_t place) const noexcept;

    /// Returns all live slots in order, except slots that are currently being written.
    [[nodiscard]] result<std::vector<queue_format::slot>> live_slots() noexcept;

    /// Appends slots, and writes their position into them. Returns the position. `lane` is a
    /// description opened with O_APPEND. Errors: ENOSPC (in a ring also if the live slots leave no
    /// space), EDQUOT, EFBIG, EIO: then nothing of them remains in the file.
    [[nodiscard]] result<std::uint64_t> append(int lane, std::span<std::byte> slots) noexcept;
    /// Returns the end of the file, for a caller that has erased its slots and checks whether later
    /// requests exist. Returns std::nullopt if the end does not show that.
    [[nodiscard]] std::optional<std::uint64_t> end_after_erasing(int lane) const noexcept;
    /// Frees slots by writing zeros to `bytes` of them; the rest is zero already. A concurrent
    /// reader finds them torn.
    void erase(std::uint64_t place, std::size_t bytes) noexcept;
    /// Replaces a slot by another of the same request.
    void rewrite(std::uint64_t place, const queue_format::slot& with) noexcept;
    /// A pause of all appends to a ring. `lane` is the caller's own description.
    class append_pause {
    public:
        append_pause(const queue_file& file, int lane) noexcept;
        append_pause(const append_pause&) = delete;
        append_pause& operator=(const append_pause&) = delete;
        ~append_pause();
        /// Returns 0, or the error of locking.
        [[nodiscard]] int error_code() const noexcept { return code_; }

    private:
        int lane_;
        bool is_needed_;
        int code_ = 0;
    };

    /// Advances the header over dead slots, up to `limit`, records live pages and frees blocks.
    /// Does nothing while another process tidies. `lane` is the caller's own description. With
    /// `thorough`, it also checks known live pages.
    void tidy(int lane, std::uint64_t limit, bool thorough) noexcept;

    /// Frees blocks once this number of bytes is dead: one call per mebibyte costs a few
    /// nanoseconds per slot.
    static constexpr std::uint64_t punch_bytes = 1U << 20;
    /// A page with a live slot this far before the end is a live page.
    static constexpr std::uint64_t live_page_distance = 16 * queue_format::page_bytes;

private:
    queue_file(io::file_handle opened, const dependencies& from) noexcept;

    [[nodiscard]] static result<std::unique_ptr<queue_file>> open_once(const io::path_handle& base,
                                                                       io::path_view path,
                                                                       const dependencies& from,
                                                                       const file_access& access) noexcept;
    [[nodiscard]] result<void> enter_file(io::volume_reach reach) noexcept;
    [[nodiscard]] result<void> initialise_file(io::volume_reach reach) noexcept;
    [[nodiscard]] result<void> write_first_header(io::volume_reach reach) noexcept;
    [[nodiscard]] result<std::optional<queue_format::header>> read_header() const noexcept;
    [[nodiscard]] result<std::shared_ptr<const queue_view>> view_of(const queue_format::header& now) noexcept;
    [[nodiscard]] result<std::uint64_t> append_atomically(int lane,
                                                          std::span<const std::byte> slots) noexcept;
    [[nodiscard]] std::uint64_t offset_of(std::uint64_t place) const noexcept;
    [[nodiscard]] int lock_appending(int lane) const noexcept;
    [[nodiscard]] result<std::uint64_t> append_to_ring(int lane, std::span<std::byte> slots) noexcept;
    [[nodiscard]] result<std::uint64_t> free_place(std::size_t bytes) const noexcept;
    [[nodiscard]] result<std::size_t> bytes_in_use(std::uint64_t place, std::size_t bytes) const noexcept;
    [[nodiscard]] result<void> write_behind(std::uint64_t place, std::span<const std::byte> slots) noexcept;
    void advance(queue_format::header& now, std::uint64_t limit) const noexcept;
    void drop_dead_live_pages(queue_format::header& now) const noexcept;
    void punch(queue_format::header& now) const noexcept;
    void punch_hole(std::uint64_t from, std::uint64_t to) const noexcept;
    [[nodiscard]] bool is_dead(std::uint64_t place, std::size_t bytes) const noexcept;
    [[nodiscard]] bool has_live_slots() noexcept;

    io::file_handle file_;  // writes at given offsets: never with O_APPEND
    dependencies dependencies_;
    append_method method_ = append_method::atomic;
    bool wakes_waiters_ = true;
    bool ends_waits_ = true;
    std::uint64_t ring_bytes_ = 0;
    std::uint64_t created_s_ = 0;
    // relaxed throughout: a smaller number only means that more slots are scanned.
    std::atomic<std::uint64_t> seen_dead_before_ = 0;
    sync::basic_small_mutex<sync::real_atomics> mutex_;
    std::shared_ptr<const queue_view> view_;  // guarded by the mutex
};

}  // namespace sluice::fsmutex
