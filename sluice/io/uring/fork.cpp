// A ring around fork(2): see io_multiplexer_fork.cpp.

#include <algorithm>
#include <chrono>

#include "sluice/io/uring/backend.hpp"

namespace sluice::io::uring {

// Buffers and connections that the kernel has provided already would exist in both processes.
bool multiplexer::serves_multishots() const noexcept {
    const auto serves = [](const half_state& each) { return each.acceptor != nullptr or each.is_multishot; };
    const bool has_groups = std::ranges::any_of(groups_, [](const auto& each) { return each != nullptr; });
    return has_groups or std::ranges::any_of(streams_, [&](const auto& chunk) {
               return chunk != nullptr and
                      std::any_of(
                          chunk.get(), chunk.get() + limits::registrations_per_chunk,
                          [&](const stream_state& each) { return std::ranges::any_of(each.halves, serves); });
           });
}

// Counts requests on streams, and the wake-up; none on files is pending. Slots of closed handles
// count: the kernel may still have their polls.
bool multiplexer::has_requests() const noexcept {
    const auto is_kernels = [](const half_state& each) {
        const bool is_in_flight = each.half != nullptr and each.half->in_flight != 0;
        return is_in_flight or each.is_polling or each.kept_by_kernel != 0;
    };
    return waker_is_armed_ or std::ranges::any_of(streams_, [&](const auto& chunk) {
               return chunk != nullptr and
                      std::any_of(chunk.get(), chunk.get() + limits::registrations_per_chunk,
                                  [&](const stream_state& each) {
                                      return std::ranges::any_of(each.halves, is_kernels);
                                  });
           });
}

// An operation cancelled here, without a cancel_code, waits again, and the next pass submits it to
// a ring.
result<void> multiplexer::backend_recall() noexcept {
    if (serves_multishots())
        return failure(
            {EBUSY, "prepare a fork while a receive_pool or an accept_stream exists: destroy it first"});
    if (not is_enabled_) return {};  // nothing has been given to it
    ENSURE(files_.empty() and cancelled_files_.empty(), "operations on files are pending over a fork");
    for (unsigned rounds = 0; has_requests(); ++rounds) {
        if (rounds == limits::fork_rounds_max)
            return failure(
                {EBUSY,
                 "prepare a fork while the kernel keeps buffers that a peer has not acknowledged: try "
                 "again later"});
        io_uring_sqe* const entry = ring_.next();
        if (entry == nullptr) return failure({ENOMEM, "prepare a fork: the ring takes no request"});
        io_uring_prep_cancel64(entry, 0, IORING_ASYNC_CANCEL_ANY);
        entry->user_data = address(completion_target::nobody, nullptr);
        // The answer is also a completion, so this returns as soon as the kernel has one. A request
        // that is about to complete on another CPU is cancelled again.
        if (auto waited = ring_.submit_and_wait(std::chrono::milliseconds(1)); not waited) return waited;
        if (ring_.is_refusing()) return failure({ENOMEM, "prepare a fork: the kernel lacks memory"});
        take_completions();
    }
    return {};
}

result<void> multiplexer::backend_renew() noexcept {
    ENSURE(not has_requests(), "the multiplexer ran between the preparation of a fork and the child");
    if (auto opened = ring_.open_in_child(sizes()); not opened) return opened;
    is_enabled_ = waker_is_armed_ = false;
    // Not in the new ring's table.
    for_each_attached([](registration& each) { each.backend_word = 0; });
    return make_waker_and_rows();
}

}  // namespace sluice::io::uring
