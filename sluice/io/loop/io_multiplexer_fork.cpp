// A multiplexer around fork(2).
//
// Memory is copied, and with it every operation that waits. What the kernel has is not: its requests write to
// the memory of the process that made them, a ring accepts requests of that process only, and an epoll
// instance that two processes change loses what either removes. So everything is taken back before, and the
// child gets kernel objects of its own, to which each process gives its waiting operations as usual.

#include "sluice/io/loop/io_multiplexer.hpp"

namespace sluice::io {

// A request on a file that a worker thread or a device has cannot be taken back.
bool io_multiplexer::can_fork() noexcept {
    bool has_files = words_.pending != 0;
    for_each_attached(
        [&](const registration& each) { has_files |= not each.is_stream() and each.pending != 0; });
    const bool is_inside_backend = direct_left_ != 0;
    return not has_files and not is_inside_backend and registered_buffers_ == 0;
}

result<void> io_multiplexer::notify_fork(fork_step step) noexcept {
    // relaxed: a thread finds its own mark only if it put it there.
    const bool has_owner = owner_.load(std::memory_order_relaxed) != nullptr;
    ENSURE(sharing_ != nullptr or not has_owner or is_inside(),
           "notify_fork is called by the thread that a multiplexer belongs to");
    const entry in(*this);
    switch (step) {
        case fork_step::prepare:
            if (can_fork()) {
                let_finish();
                return backend_recall();
            }
            return failure(
                {EBUSY,
                 "prepare a fork while operations on files are pending, or registered buffers exist: "
                 "complete them first"});
        case fork_step::parent:
            return {};
        case fork_step::child:
            // Threads that were completing an operation exist only in the parent.
            completing_.store(0, std::memory_order_relaxed);
            return backend_renew();
    }
    ENSURE(false, "no such step of a fork");
    return {};
}

}  // namespace sluice::io
