#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "sluice/fsmutex/kernel_lock.hpp"
#include "sluice/fsmutex/lock_file.hpp"
#include "sluice/fsmutex/queue_format.hpp"
#include "sluice/fsmutex/shared_fs_mutex.hpp"
#include "sluice/io/file/file_handle.hpp"
#include "sluice/sync/latch.hpp"

// Internal to fsmutex: the file of atomic_append as something that is opened, looked through, tidied and, by
// the last who closes it, removed. docs/formats/fs_mutex_file.md says what its bytes and locks mean.

namespace sluice::fsmutex {

/// Bytes that are locked and never written, far behind the slots.
namespace queue_bytes {
inline constexpr kernel_lock::range everything{.first = 0, .length = 0};
inline constexpr std::uint64_t slots_end = std::uint64_t{1} << 61;
inline constexpr kernel_lock::range in_use{.first = slots_end,
                                           .length = 1};  // shared: by everyone who has it open
inline constexpr kernel_lock::range opening{.first = slots_end + 1,
                                            .length = 1};  // exclusive: opening, closing
inline constexpr kernel_lock::range tidying{.first = slots_end + 2,
                                            .length = 1};  // exclusive: changing the header
inline constexpr kernel_lock::range appending{.first = slots_end + 3,
                                              .length = 1};  // exclusive: appending to a ring
inline constexpr std::uint64_t first_request = std::uint64_t{1} << 62;
inline constexpr std::uint64_t id_mask = (std::uint64_t{1} << 61) - 1;
/// Of an id, the lowest bits: which it is of those that were locked at once.
inline constexpr unsigned count_bits = 4;
/// And next to them the processor on which a request is asked for: a hint, for whom it may help to run.
inline constexpr std::uint64_t processor_mask = 0xff;
inline constexpr std::uint64_t drawn_mask =
    id_mask & ~(processor_mask << count_bits | ((1U << count_bits) - 1));
[[nodiscard]] constexpr std::uint64_t processor_of(std::uint64_t id) noexcept {
    return id >> count_bits & processor_mask;
}
inline constexpr kernel_lock::range all_requests{.first = first_request, .length = id_mask + 1};
/// Exclusive from before a request is appended until after it is erased; free, and its slot still there:
/// dead.
[[nodiscard]] constexpr kernel_lock::range of_request(std::uint64_t id) noexcept {
    return {.first = first_request + (id & id_mask), .length = 1};
}
/// Of as many requests of one lane as have ids from that on: one system call for all of them.
[[nodiscard]] constexpr kernel_lock::range of_requests_from(std::uint64_t first_id) noexcept {
    return {.first = first_request + (first_id & id_mask), .length = 1U << count_bits};
}
}  // namespace queue_bytes

/// Where the live slots are, as of some moment. Stays true for ever, since slots only die or come behind.
struct queue_view {
    struct elder_page {
        std::uint64_t place;
        std::array<std::byte, queue_format::page_bytes> content;
    };
    std::uint64_t generation = 0;
    std::uint64_t first_known_good = queue_format::page_bytes;
    std::vector<std::shared_ptr<const elder_page>> elders;
};

/// Slots have places, which only grow: in the order of the requests, and never the same again.
///
/// Usually that is where a slot stands in the file. Where several hosts have the file, or what is dead cannot
/// be freed, the file is a ring: places go round in its bytes, and a slot says which of those places it has.
/// 1. In a ring a slot is put where all bytes are zero, while the byte for appending is locked. So what is
///    live stays, whatever its age, and its owner may erase it without that lock.
/// 2. Who changes somebody else's slot, because that is dead, holds that lock from looking to writing:
/// between
///    the two it may have been erased by another, and the bytes may be a new request's.
/// 3. Whoever looks at a place finds a slot of another place free: that one is younger than all who look
///    there, or on an elder's page.
///
/// Thread safety: any thread, except opening and destruction. Allocates: views, when the header has changed.
class queue_file {
public:
    /// How a slot gets behind all others: by the kernel's atomic append, or into a ring, under a lock.
    enum class append_method : bool { atomic, ring };

    /// Errors: as file_handle::open; ETIMEDOUT if others are opening or closing it for seconds; EBADMSG if it
    /// is no such file, or was cut while others have it open; ENOLCK, EOPNOTSUPP.
    [[nodiscard]] static result<std::unique_ptr<queue_file>> open(const io::path_handle& base,
                                                                  io::path_view path, const seams& from,
                                                                  const file_access& access) noexcept;
    queue_file(const queue_file&) = delete;
    queue_file& operator=(const queue_file&) = delete;
    /// Removes the file if nobody else has it open and no slot is live.
    ~queue_file();
    /// In a forked child: its destruction leaves the file as it is. The kernel could not tell the child's
    /// locks from its parent's.
    void leave_to_parent() noexcept { (void)file_.close(); }

    [[nodiscard]] int descriptor() const noexcept { return file_.descriptor(); }
    [[nodiscard]] append_method method() const noexcept { return method_; }
    /// Whether the kernel wakes who waits for a lock here.
    [[nodiscard]] bool wakes_waiters() const noexcept { return wakes_waiters_; }
    /// Whether who waits for a lock here can be made to wait no longer.
    [[nodiscard]] bool ends_waits() const noexcept { return ends_waits_; }
    /// For the records: microseconds since the file was made.
    [[nodiscard]] std::uint64_t age_us() const noexcept;
    [[nodiscard]] std::uint64_t created_s() const noexcept { return created_s_; }

    /// Before this, too, no slot is live but on the elders' pages: what this process has seen itself.
    [[nodiscard]] std::uint64_t seen_dead_before() const noexcept {
        return seen_dead_before_.load(std::memory_order_relaxed);
    }
    void note_dead_before(std::uint64_t place) noexcept;
    [[nodiscard]] std::shared_ptr<const queue_view> view() noexcept;
    /// Looks into the header. Errors: EIO, ENOMEM.
    [[nodiscard]] result<std::shared_ptr<const queue_view>> refreshed_view() noexcept;

    /// The place behind the last slot; of a ring, perhaps behind one that came since. Errors: EIO, ESTALE;
    /// EBADMSG if the file is damaged.
    [[nodiscard]] result<std::uint64_t> end() const noexcept;
    /// Fewer than asked for at the end.
    [[nodiscard]] result<bytes_view> read(std::uint64_t place, std::span<std::byte> into) const noexcept;
    /// What bytes that were read at a place mean there.
    [[nodiscard]] queue_format::slot decode_at(std::uint64_t place, bytes_view bytes) const noexcept;
    /// Again and again while it is torn. Errors: EBADMSG if it stays so.
    [[nodiscard]] result<queue_format::slot> read_slot(std::uint64_t place) const noexcept;

    /// All there are, in their order; what is being written just now is left out.
    [[nodiscard]] result<std::vector<queue_format::slot>> live_slots() noexcept;

    /// Behind all others; their place, which they are made to say. `lane` is a description opened with
    /// O_APPEND. Errors: ENOSPC (of a ring, too: no room among its live slots), EDQUOT, EFBIG, EIO: nothing
    /// of it is left.
    [[nodiscard]] result<std::uint64_t> append(int lane, std::span<std::byte> slots) noexcept;
    /// Returns where the file ends, after the caller has erased slots and if it asks whether others came
    /// later. Returns std::nullopt if the end does not show that.
    [[nodiscard]] std::optional<std::uint64_t> end_after_erasing(int lane) const noexcept;
    /// Frees slots by zeros in `bytes` of them; the rest is zero already. A concurrent reader finds them
    /// torn.
    void erase(std::uint64_t place, std::size_t bytes) noexcept;
    /// Puts one in the place of another of the same request.
    void rewrite(std::uint64_t place, const queue_format::slot& with) noexcept;
    /// While it lives nobody appends to a ring. `lane` is the caller's own description.
    class append_pause {
    public:
        append_pause(const queue_file& file, int lane) noexcept;
        append_pause(const append_pause&) = delete;
        append_pause& operator=(const append_pause&) = delete;
        ~append_pause();
        /// 0, or why it could not be locked.
        [[nodiscard]] int error_code() const noexcept { return code_; }

    private:
        int lane_;
        bool is_needed_;
        int code_ = 0;
    };

    /// Advances the header over slots that are dead, up to `limit`, notes elders and frees blocks; nothing if
    /// somebody else is at it. `lane` is the caller's own description. `thorough` looks at old elders, too.
    void tidy(int lane, std::uint64_t limit, bool thorough) noexcept;

    /// Frees blocks once so many bytes are dead: one call per mebibyte costs a few nanoseconds per slot.
    static constexpr std::uint64_t punch_bytes = 1U << 20;
    /// A page with a live slot this far before the end is an elder.
    static constexpr std::uint64_t elder_distance = 16 * queue_format::page_bytes;

private:
    queue_file(io::file_handle opened, const seams& from) noexcept;

    [[nodiscard]] static result<std::unique_ptr<queue_file>> open_once(const io::path_handle& base,
                                                                       io::path_view path, const seams& from,
                                                                       const file_access& access) noexcept;
    [[nodiscard]] result<void> enter_file(io::volume_reach reach) noexcept;
    [[nodiscard]] result<void> begin_anew(io::volume_reach reach) noexcept;
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
    void drop_dead_elders(queue_format::header& now) const noexcept;
    void punch(queue_format::header& now) const noexcept;
    void punch_hole(std::uint64_t from, std::uint64_t to) const noexcept;
    [[nodiscard]] bool is_dead(std::uint64_t place, std::size_t bytes) const noexcept;
    [[nodiscard]] bool has_live_slots() noexcept;

    io::file_handle file_;  // writes where it is told to: never with O_APPEND
    seams seams_;
    append_method method_ = append_method::atomic;
    bool wakes_waiters_ = true;
    bool ends_waits_ = true;
    std::uint64_t ring_bytes_ = 0;
    std::uint64_t created_s_ = 0;
    // relaxed throughout: a smaller number only means to look at more.
    std::atomic<std::uint64_t> seen_dead_before_ = 0;
    sync::basic_latch<sync::real_atomics> latch_;
    std::shared_ptr<const queue_view> view_;  // under the latch
};

}  // namespace sluice::fsmutex
