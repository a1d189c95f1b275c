#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <memory>
#include <vector>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/engine.hpp"
#include "sluice/io/uring/ring.hpp"
#include "sluice/io/uring/uring_options.hpp"

namespace sluice::io::uring {

/// The target of a completion: the low bits of its user_data; the rest is an address.
enum class completion_target : std::uint64_t {
    nobody,     // no target: an answer that is ignored
    loop,       // a wake-up
    transfer,   // a half_state: its call in flight
    poll,       // a half_state: its handle is ready
    zero_copy,  // an operation: sent, or its memory released
    file,       // an operation
    receive,    // a half_state: its multishot receive
    accept,     // a half_state: its multishot accept
};
inline constexpr std::uint64_t completion_target_mask = 7;

[[nodiscard]] inline std::uint64_t address(completion_target sort, const void* of) noexcept {
    return reinterpret_cast<std::uintptr_t>(of) | static_cast<std::uint64_t>(sort);
}

[[nodiscard]] inline void* addressed(std::uint64_t user_data) noexcept {
    return reinterpret_cast<void*>(user_data & ~completion_target_mask);  // NOLINT: of address()
}

/// Frees memory shared with the kernel.
struct unmap {
    std::size_t bytes = 0;
    void operator()(void* shared) const noexcept;
};

/// The buffers of a receive pool, and the memory through which the kernel gets them.
struct buffer_group {
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    struct arrival {
        std::uint32_t bytes;
        std::uint32_t next;  // the buffer filled next for the same half
    };

    buffer_group(std::span<std::byte> memory_of, std::size_t bytes_of_each) noexcept
        : memory(memory_of), bytes_each(bytes_of_each) {}
    void give(std::uint32_t index) noexcept;

    std::span<std::byte> memory;
    std::size_t bytes_each;
    unsigned entries = 0;
    std::unique_ptr<io_uring_buf_ring, unmap> shared;
    std::unique_ptr<arrival[]> arrivals;  // by buffer
};

/// The state of the ring for one direction of a pipe or socket. Invariants:
///   1. At most one transfer and one poll are in flight; while a transfer is, `half->in_flight` is
///      not 0 and counts the operations at the front of the queue that it covers.
///   2. A `receive` or `accept_ahead` with the kernel counts as in flight while the multishot call
///      that serves it, if any, is in flight. The multishot call continues between two of them, and
///      is over when the last has ended.
///   3. While anything is in flight this neither moves nor is destroyed: detach waits for that.
struct alignas(8) half_state {
    registration::half* half = nullptr;
    std::uint64_t in_flight_as = 0;  // the transfer's user_data
    std::size_t bytes = 0;           // the bytes that the transfer requests
    bool is_polling = false;
    bool is_stale = false;         // the poll belongs to a closed handle
    bool is_unready = false;       // a transfer would have to wait; the next one begins by waiting
    bool reports_more = false;     // each read reports whether more bytes have arrived (TCP)
    bool polls_only = false;       // O_NONBLOCK: the ring would return EAGAIN instead of waiting
    bool has_cancelled = false;    // an operation of the transfer must end early
    bool never_zero_copy = false;  // without success, or impossible, on this socket
    bool was_zero_copy = false;    // once at least
    std::uint8_t copied_in_a_row = 0;
    std::uint32_t kept_by_kernel = 0;  // sends whose memory it still reads
    list_hook<half_state> cancel_link;
    // Results of a multishot call that no operation has taken yet, in order: filled buffers, or
    // descriptors.
    std::uint32_t oldest_arrived = buffer_group::none;
    std::uint32_t newest_arrived = buffer_group::none;
    unsigned receive_group = 0;
    int multishot_end = 0;               // the errno value that ended it, unless it is in progress
    bool has_ended = false;              // and no operation has reported it yet
    bool is_multishot = false;           // it is with the kernel
    bool is_bursting = false;            // connections come faster than they are taken: use
                                         // calls until there is none
    accept_request* acceptor = nullptr;  // the target of the kernel's accepts
    msghdr message{};                    // the kernel writes to it when a
                                         // gathered receive completes
};

/// The io_uring back end. Streams are in streams.cpp, their multishot receives in receive.cpp,
/// their multishot accepts in accept.cpp, files and barriers in files.cpp, fork(2) in fork.cpp.
///
/// Invariants:
///   1. A stream's operation with the kernel is at the front of its half's queue; a file's is in no
///      queue, or in `cancelled_files_`. A file's counts as with the kernel from when it has a
///      submission entry.
///   2. Requests that did not fit into the ring (full) are in `dirty_`, `files_`, or a list of
///      cancellations. They are submitted in the next pass, which does not sleep before.
///   3. While the kernel refuses entries for lack of memory, the entries that it has not taken are
///      taken back and carried out by calls (refusal.cpp).
class multiplexer final : public io_multiplexer {
public:
    explicit multiplexer(const uring_options& options) noexcept : options_(options) {
        batch_starts();
        if (options.threads == run_by::several)
            options_.zero_copy_send_bytes_min = std::numeric_limits<std::size_t>::max();
        if (options_.zero_copy_send_bytes_min != std::numeric_limits<std::size_t>::max())
            query_before_speculating();
    }
    ~multiplexer() override { let_finish(); }

    [[nodiscard]] std::string_view name() const noexcept override { return "io_uring"; }
    [[nodiscard]] result<void> open() noexcept;

private:
    // A registration's `backend_word`: how often the ring was given its descriptor. At `fixed_from`
    // the descriptor is put into the ring's table of files, with a system call that does not pay
    // off for a short-lived handle.
    static constexpr std::uint32_t fixed_from = 4;
    static constexpr std::uint32_t is_fixed = 5;
    static constexpr std::uint32_t never_fixed = 6;

    struct stream_state {
        std::array<half_state, 2> halves;
    };
    using cancel_list = intrusive_list<half_state, &half_state::cancel_link>;

    result<void> backend_attach(registration& attached) noexcept override;
    void backend_detach(registration& attached) noexcept override;
    [[nodiscard]] bool waits_for_words() const noexcept override { return ring_.supports(op_futex_wait); }
    void backend_submit(detail::operation_record& op) noexcept override;
    void backend_cancel(detail::operation_record& op) noexcept override;
    result<void> backend_complete(time_point until) noexcept override;
    void backend_flush() noexcept override;
    void backend_poll(detail::operation_record& op) noexcept override;
    void backend_wake() noexcept override;
    result<void> backend_recall() noexcept override;
    result<void> backend_renew() noexcept override;
    [[nodiscard]] zero_copy_counts zero_copy_sends() const noexcept override {
        return {.sends = zero_copy_.sends.load(std::memory_order_relaxed),
                .copied = zero_copy_.copied.load(std::memory_order_relaxed)};
    }
    [[nodiscard]] bool may_speculate(const detail::operation_record& op) const noexcept override {
        return not wants_zero_copy(op);
    }
    std::optional<unsigned> backend_register(std::span<std::byte> memory) noexcept override;
    void backend_unregister(unsigned index) noexcept override;

    std::optional<unsigned> provide_receive_buffers(std::span<std::byte> memory,
                                                    std::size_t bytes_each) noexcept override;
    void return_receive_buffer(unsigned group, std::uint32_t index) noexcept override;
    void forget_receive_buffers(unsigned group) noexcept override;

    bool begin_accepting(registration& listener, accept_request& into) noexcept override;
    void end_accepting(registration& listener) noexcept override;

    // Creation, and the parts that a child needs again.
    [[nodiscard]] ring::sizes sizes() const noexcept;
    [[nodiscard]] result<void> make_waker_and_rows() noexcept;
    [[nodiscard]] bool serves_multishots() const noexcept;
    [[nodiscard]] bool has_requests() const noexcept;

    // The loop.
    [[nodiscard]] result<void> enable() noexcept;
    [[nodiscard]] bool queue_all() noexcept;
    [[nodiscard]] bool queue_wake_up() noexcept;
    [[nodiscard]] bool queue_cancellations() noexcept;
    [[nodiscard]] bool queue_cancellation(std::uint64_t of) noexcept;
    [[nodiscard]] inline result<void> submit(bool may_sleep, time_point until) noexcept;
    [[nodiscard]] result<void> submit_shared(bool may_sleep, duration left) noexcept;
    void take_completions() noexcept;
    void on_completion(std::uint64_t user_data, int outcome, unsigned flags) noexcept;
    void name_file(io_uring_sqe& entry, registration& target) noexcept {
        // A request for a file in the ring's table uses its slot there.
        if (target.backend_word != is_fixed and not put_in_table(target)) return;
        entry.fd = static_cast<int>(target.slot);
        entry.flags |= IOSQE_FIXED_FILE;
    }
    [[nodiscard]] bool put_in_table(registration& target) noexcept;

    // While the kernel lacks memory.
    [[nodiscard]] result<void> complete_by_calls(time_point until) noexcept;
    void take_back_refused() noexcept;
    [[nodiscard]] bool take_back(std::uint64_t user_data) noexcept;
    void serve_by_calls() noexcept;
    void serve_by_calls(registration::half& half) noexcept;
    void accept_by_call(half_state& state) noexcept;
    void perform_now(detail::operation_record& op) noexcept;
    void pause_refused(time_point until) noexcept;

    // Streams.
    static half_state& state_of(const registration::half& half) noexcept {
        return *static_cast<half_state*>(half.backend);
    }
    [[nodiscard]] bool queue_dirty() noexcept;
    [[nodiscard]] bool queue_half(registration::half& half) noexcept;
    void finish_empty(registration::half& half) noexcept;
    [[nodiscard]] bool queue_poll(half_state& state) noexcept;
    [[nodiscard]] bool queue_transfer(half_state& state) noexcept;
    [[nodiscard]] bool queue_single(half_state& state) noexcept;
    void finish_entry(io_uring_sqe& entry, half_state& state) noexcept;
    void prepare_single(io_uring_sqe& entry, half_state& state, buffer piece) noexcept;
    void prepare_gathered(io_uring_sqe& entry, half_state& state) noexcept;
    void prepare_zero_copy(io_uring_sqe& entry, half_state& state, detail::operation_record& op) noexcept;
    [[nodiscard]] bool wants_zero_copy(const detail::operation_record& op) const noexcept;
    void on_transfer(half_state& state, int outcome, unsigned flags) noexcept;
    void on_single_read(half_state& state, std::size_t bytes, unsigned flags) noexcept;
    void on_bytes(half_state& state, int outcome, unsigned flags) noexcept;
    static void record_readiness(half_state& state, std::size_t bytes, unsigned flags) noexcept;
    void on_poll(half_state& state, int outcome) noexcept;
    void on_zero_copy(detail::operation_record& op, int outcome, unsigned flags) noexcept;
    // One thread writes, so a load and a store suffice, and they order no other access.
    static void count(std::atomic<std::uint64_t>& what) noexcept {
        what.store(what.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    void fail_front(registration::half& half, int code) noexcept;
    void withdraw_cancelled(half_state& state, std::size_t members) noexcept;
    void end_stale_poll(half_state& state) noexcept;

    // Multishot receives.
    [[nodiscard]] bool queue_receive(half_state& state) noexcept;
    [[nodiscard]] bool arm_receive(half_state& state, const receive_request& request) noexcept;
    [[nodiscard]] bool finish_receive(half_state& state) noexcept;
    void record_arrival(half_state& state, std::uint32_t index, int bytes) noexcept;
    void on_receive(half_state& state, int outcome, unsigned flags) noexcept;

    // Multishot accepts.
    void reserve_links() noexcept;
    [[nodiscard]] bool queue_accept(half_state& state) noexcept;
    [[nodiscard]] bool arm_accept(half_state& state) noexcept;
    [[nodiscard]] bool finish_accept(half_state& state) noexcept;
    void record_connection(half_state& state, int descriptor) noexcept;
    void record_peer(half_state& state) noexcept;
    static void notify_peer(detail::operation_record& op) noexcept;
    void on_accept(half_state& state, int outcome, unsigned flags) noexcept;
    // Either.
    void finish_front(registration::half& half) noexcept;

    // Files.
    [[nodiscard]] bool queue_files() noexcept;
    void queue_file(io_uring_sqe& entry, detail::operation_record& op) noexcept;
    void queue_piece(io_uring_sqe& entry, detail::operation_record& op) const noexcept;
    void prepare_barrier(io_uring_sqe& entry, const detail::operation_record& op) noexcept;
    void prepare_file(io_uring_sqe& entry, const detail::operation_record& op) noexcept;
    void prepare_piece(io_uring_sqe& entry, const detail::operation_record& op, buffer piece) noexcept;
    // Nearly always the complete transfer at once.
    void on_file(detail::operation_record& op, int outcome) noexcept {
        const bool is_whole = op.piece_count == 1 and op.transferred == 0 and op.cancel_code == 0 and
                              outcome > 0 and static_cast<std::size_t>(outcome) == op.pieces->size();
        if (is_whole) [[likely]] {
            op.transferred = static_cast<std::size_t>(outcome);
            finish_directly(op);
        } else {
            on_part_of_file(op, outcome);
        }
    }
    void on_part_of_file(detail::operation_record& op, int outcome) noexcept;
    static void prepare_word(io_uring_sqe& entry, detail::operation_record& op) noexcept;
    void on_word(detail::operation_record& op, int outcome) noexcept;
    [[nodiscard]] int registered_index(buffer piece) const noexcept;

    uring_options options_;
    ring ring_;
    handle waker_;
    bool waker_is_armed_ = false;
    bool is_enabled_ = false;
    bool reports_zero_copy_usage_ = true;  // until the kernel does not accept the flag
    bool has_zero_copy_ = false;
    struct {
        std::atomic<std::uint64_t> sends{0};
        std::atomic<std::uint64_t> copied{0};
    } zero_copy_;
    operation_queue files_;                                 // to be submitted to the ring
    operation_queue cancelled_files_;                       // in flight, to be cancelled
    cancel_list cancelled_;                                 // the same of streams
    std::vector<std::unique_ptr<stream_state[]>> streams_;  // by slot, in chunks:
                                                            // addresses are stable
    std::array<std::unique_ptr<buffer_group>, limits::receive_groups_max> groups_;

    // For each connection that the kernel has accepted and no operation has taken, by descriptor:
    // the connection accepted next on the same listener. The number of connections is limited only
    // by the number of files that may be open.
    std::unique_ptr<std::uint32_t[], unmap> links_;

    unsigned arenas_end_ = 0;  // no registered buffer from here on
    std::array<std::span<std::byte>, ring::buffer_slots> arenas_{};

    // The lists of segments of gathered calls: a row for each submission entry, because the kernel
    // has copied the list by the time the entry is free again.
    using piece_row = std::array<iovec, limits::gathered_pieces_max>;
    std::unique_ptr<piece_row[]> piece_rows_;
};

}  // namespace sluice::io::uring
