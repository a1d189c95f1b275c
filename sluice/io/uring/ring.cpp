#include "sluice/io/uring/ring.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>
#include <span>

#include "sluice/base/ensure.hpp"
#include "sluice/io/call/handle.hpp"

namespace sluice::io::uring {
namespace {

// Every loop of the library runs completions itself and calls for them, so the kernel need not
// interrupt it. From the best set of flags to none: an older kernel returns EINVAL for an unknown
// one.
constexpr std::array<unsigned, 3> flag_sets = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    0,
};
constexpr unsigned common_flags =
    IORING_SETUP_R_DISABLED | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;

// NODROP: completions are never lost; SUBMIT_STABLE: the data of a submission may change once
// submitted.
constexpr unsigned needed_features = IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_EXT_ARG |
                                     IORING_FEAT_FAST_POLL | IORING_FEAT_CQE_SKIP;

error refusal(int code) noexcept {
    switch (code) {
        case EPERM:
            return {code, "io_uring_setup, denied by seccomp or kernel.io_uring_disabled"};
        case ENOSYS:
            return {code, "io_uring_setup, unknown to this kernel or sandbox"};
        case ENOMEM:
        case EAGAIN:
            return {code, "io_uring_setup, beyond RLIMIT_MEMLOCK or the memory of the control group"};
        default:
            return {code, "io_uring_setup"};
    }
}

error too_old() noexcept {
    return {EOPNOTSUPP, "io_uring_setup, of a kernel before 5.19"};
}

const void* this_thread_mark() noexcept {
    static thread_local const char mark = 0;
    return &mark;
}

// Returns whether a file removed from the table is closed at once although a request on another
// file of the table is in flight. Before 6.13 it was not. Tested on a separate ring.
bool files_are_let_go_at_once() noexcept {
    io_uring trial{};
    if (io_uring_queue_init(4, &trial, 0) != 0) return false;
    const std::unique_ptr<io_uring, decltype(&io_uring_queue_exit)> closes_ring(&trial, io_uring_queue_exit);
    std::array<int, 2> ends{};
    const handle quiet(native_handle{.descriptor = ::eventfd(0, EFD_CLOEXEC)});
    if (not quiet.is_valid() or ::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    const handle reader(native_handle{.descriptor = ends[0]});
    handle writer(native_handle{.descriptor = ends[1]});
    const std::array<int, 2> files = {quiet.descriptor(), writer.descriptor()};
    if (io_uring_register_files(&trial, files.data(), files.size()) != 0) return false;

    io_uring_sqe* const never_ready = io_uring_get_sqe(&trial);
    io_uring_prep_poll_add(never_ready, 0, POLLIN);
    io_uring_sqe_set_flags(never_ready, IOSQE_FIXED_FILE);
    if (io_uring_submit(&trial) != 1) return false;
    const int none = -1;
    if (io_uring_register_files_update(&trial, 1, &none, 1) != 1) return false;
    (void)writer.close();
    pollfd watched{.fd = reader.descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&watched, 1, 0) == 1 and (watched.revents & POLLHUP) != 0;
}

}  // namespace

ring::~ring() {
    if (not is_open_) return;
    // The index under which the owner has registered it may, on this thread, belong to another
    // ring, which liburing would unregister. No thread has this index, so the kernel refuses.
    if (is_registered_ and not is_owner()) ring_.enter_ring_fd = -1;
    io_uring_queue_exit(&ring_);
}

// 0, or a negative errno value.
int ring::set_up(sizes wanted) noexcept {
    ENSURE(not is_open_, "a ring is open already");
    int outcome = -EINVAL;
    // Not even COOP_TASKRUN for several: a completion would wait for a thread that computes.
    const std::span sets(flag_sets);
    for (const unsigned flags : wanted.is_shared ? sets.last(1) : sets) {
        io_uring_params parameters{};
        parameters.flags = flags | common_flags;
        parameters.cq_entries = wanted.completions;
        outcome = io_uring_queue_init_params(wanted.submissions, &ring_, &parameters);
        if (outcome != -EINVAL) break;
    }
    is_open_ = outcome == 0;
    is_shared_ = wanted.is_shared;
    return outcome;
}

result<void> ring::set_up_within_memory(sizes wanted) noexcept {
    // EAGAIN: the queues cannot be mapped, because the process locks all its maps (mlockall) and
    // may lock no more.
    const auto lacks_memory = [](int outcome) { return outcome == -ENOMEM or outcome == -EAGAIN; };
    int outcome = set_up(wanted);
    while (lacks_memory(outcome) and wanted.submissions > sizes_min.submissions) {
        wanted.submissions = std::max(wanted.submissions / 4, sizes_min.submissions);
        wanted.completions = std::max(wanted.completions / 4, sizes_min.completions);
        outcome = set_up(wanted);
    }
    if (outcome == -EINVAL) return failure(too_old());
    if (outcome < 0) return failure(refusal(-outcome));
    return {};
}

result<void> ring::probe() noexcept {
    if ((ring_.features & needed_features) != needed_features) return failure(too_old());
    const std::unique_ptr<io_uring_probe, decltype(&io_uring_free_probe)> answer(
        io_uring_get_probe_ring(&ring_), io_uring_free_probe);
    if (answer == nullptr) return failure({ENOMEM, "io_uring_register, probe"});
    const std::size_t count = std::min<std::size_t>(answer->ops_len, known_.size());
    for (std::size_t i = 0; i < count; ++i)
        known_[i] = (answer->ops[i].flags & IO_URING_OP_SUPPORTED) != 0;
    // It came with flags of a receive that we rely on and that have no probe: 5.19.
    if (not supports(IORING_OP_SOCKET)) return failure(too_old());
    return {};
}

result<void> ring::open(sizes wanted) noexcept {
    if (auto made = set_up_within_memory(wanted); not made) return made;
    if (auto known = probe(); not known) return known;
    // A fork would share the queues without the right to use them.
    (void)io_uring_ring_dontfork(&ring_);
    static const bool lets_go = files_are_let_go_at_once();
    rlimit open_files{};
    (void)::getrlimit(RLIMIT_NOFILE, &open_files);
    // The kernel refuses a table longer than that.
    const auto slots = static_cast<unsigned>(std::min<rlim_t>(wanted.files, open_files.rlim_cur));
    if (lets_go and io_uring_register_files_sparse(&ring_, slots) == 0) file_slots_ = slots;
    has_buffer_table_ = io_uring_register_buffers_sparse(&ring_, buffer_slots) == 0;
    return {};
}

result<void> ring::open_in_child(sizes wanted) noexcept {
    // The queues are not unmapped: they have not been copied, and other memory may be in their
    // place.
    if (is_open_) (void)::close(ring_.ring_fd);
    ring_ = {};
    is_open_ = is_enabled_ = is_refusing_ = is_registered_ = has_buffer_table_ = false;
    file_slots_ = 0;
    buffers_used_ = 0;
    owner_ = nullptr;
    return open(wanted);
}

result<void> ring::enable() noexcept {
    if (is_enabled_) return {};
    ENSURE(is_open_, "enabled before it is open");
    if (const int outcome = io_uring_enable_rings(&ring_); outcome < 0)
        return failure({-outcome, "io_uring_register, enable"});
    is_enabled_ = true;
    owner_ = this_thread_mark();
    // Saves the lookup of the descriptor in every call; a thread may register 16, so a refusal is
    // not an error.
    if (not is_shared_) is_registered_ = io_uring_register_ring_fd(&ring_) == 1;
    return {};
}

bool ring::is_owner() const noexcept {
    return is_shared_ or owner_ == this_thread_mark();
}

io_uring_sqe* ring::next_of_full() noexcept {
    ENSURE(is_owner(), "only the thread that has enabled a ring submits");
    if (io_uring_submit(&ring_) <= 0) return nullptr;
    return io_uring_get_sqe(&ring_);
}

bool ring::take_back(std::uint64_t user_data) noexcept {
    ENSURE(user_data != 0, "names every entry that has been taken back");
    ENSURE(ring_.sq.sqe_tail - ring_.sq.sqe_head <= ring_.sq.ring_entries, "a queue has entries of its own");
    // Entries before `sqe_head` are known to the kernel, even those that it has not taken yet.
    for (unsigned at = ring_.sq.sqe_head; at != ring_.sq.sqe_tail; ++at) {
        io_uring_sqe& entry = ring_.sq.sqes[at & ring_.sq.ring_mask];
        if (entry.user_data != user_data) continue;
        make_idle(entry);
        return true;
    }
    return false;
}

void ring::make_idle(io_uring_sqe& entry) noexcept {
    clear(entry);
    io_uring_prep_nop(&entry);
    entry.flags = IOSQE_CQE_SKIP_SUCCESS;
    entry.user_data = 0;
}

// Entries that the kernel does not take stay in the queue: that, an interruption, a busy kernel and
// an expired time are not errors.
result<void> ring::accepted(int outcome) noexcept {
    is_refusing_ = outcome == -ENOMEM or outcome == -EAGAIN;
    return judged(outcome);
}

result<void> ring::judged(int outcome) noexcept {
    constexpr std::array passing = {-EINTR, -ETIME, -EBUSY, -ENOMEM, -EAGAIN};
    if (outcome >= 0 or std::ranges::find(passing, outcome) != passing.end()) [[likely]]
        return {};
    if (outcome == -EEXIST) return failure({EEXIST, "io_uring_enter, on another thread than the ring's"});
    // An operation whose completion was lost would wait forever.
    if (outcome == -EBADR)
        return failure({EBADR, "io_uring_enter, which lost completions for lack of memory"});
    return failure({-outcome, "io_uring_enter"});
}

result<void> ring::submit() noexcept {
    if (has_submissions()) return accepted(io_uring_submit_and_get_events(&ring_));
    const unsigned flags = IO_URING_READ_ONCE(*ring_.sq.kflags);
    if ((flags & (IORING_SQ_CQ_OVERFLOW | IORING_SQ_TASKRUN)) == 0) return {};
    return accepted(io_uring_get_events(&ring_));
}

void ring::fetch_completions() noexcept {
    (void)io_uring_get_events(&ring_);  // a refusal is found by submit()
}

result<void> ring::submit_and_wait(std::chrono::nanoseconds at_most) noexcept {
    ENSURE(at_most >= at_most.zero() and at_most != at_most.max(), "a limit that lies ahead");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    __kernel_timespec limit{.tv_sec = seconds.count(), .tv_nsec = (at_most - seconds).count()};
    io_uring_cqe* first = nullptr;
    return accepted(io_uring_submit_and_wait_timeout(&ring_, &first, 1, &limit, nullptr));
}

result<void> ring::wait(std::chrono::nanoseconds at_most) const noexcept {
    ENSURE(is_shared_ and at_most >= at_most.zero(), "several threads wait for a shared ring only");
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
    const __kernel_timespec limit{.tv_sec = seconds.count(), .tv_nsec = (at_most - seconds).count()};
    const bool forever = at_most == std::chrono::nanoseconds::max();
    io_uring_getevents_arg argument{};
    argument.ts = forever ? 0 : reinterpret_cast<std::uintptr_t>(&limit);
    return judged(io_uring_enter2(static_cast<unsigned>(ring_.ring_fd), 0, 1,
                                  IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                                  reinterpret_cast<sigset_t*>(&argument), sizeof argument));
}

bool ring::set_file(unsigned slot, int descriptor) noexcept {
    ENSURE(slot < file_slots_, "no slot of the table");
    return io_uring_register_files_update(&ring_, slot, &descriptor, 1) == 1;
}

result<unsigned> ring::register_buffer(void* data, std::size_t bytes) noexcept {
    ENSURE(bytes != 0, "there is nothing to register");
    const auto index = static_cast<unsigned>(std::countr_one(buffers_used_));
    if (not has_buffer_table_ or index >= buffer_slots)
        return failure({ENOBUFS, "io_uring_register, buffer"});
    const iovec memory{.iov_base = data, .iov_len = bytes};
    const __u64 no_tag = 0;
    const int outcome = io_uring_register_buffers_update_tag(&ring_, index, &memory, &no_tag, 1);
    if (outcome < 0) return failure({-outcome, "io_uring_register, buffer"});
    buffers_used_ |= std::uint64_t{1} << index;
    return index;
}

void ring::unregister_buffer(unsigned index) noexcept {
    ENSURE(index < buffer_slots, "no slot of the table");
    ENSURE((buffers_used_ >> index & 1) != 0, "a buffer that is not registered is unregistered");
    const iovec nothing{};
    const __u64 no_tag = 0;
    // Refused on a thread that is not the owner: the pages stay pinned until the ring is closed,
    // and the index in use.
    if (io_uring_register_buffers_update_tag(&ring_, index, &nothing, &no_tag, 1) < 0) return;
    buffers_used_ &= ~(std::uint64_t{1} << index);
}

result<void> ring::register_provided(io_uring_buf_ring* shared, unsigned entries,
                                     std::uint16_t group) noexcept {
    ENSURE(std::has_single_bit(entries), "the kernel counts by a mask");
    io_uring_buf_reg asked{};
    asked.ring_addr = reinterpret_cast<std::uintptr_t>(shared);
    asked.ring_entries = entries;
    asked.bgid = group;
    const int outcome = io_uring_register_buf_ring(&ring_, &asked, 0);
    if (outcome < 0) return failure({-outcome, "io_uring_register, provided buffers"});
    return {};
}

bool ring::unregister_provided(std::uint16_t group) noexcept {
    return io_uring_unregister_buf_ring(&ring_, group) == 0;
}

}  // namespace sluice::io::uring
