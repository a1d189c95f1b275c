#include "sluice/io/loop/worker_pool.hpp"

#include <cerrno>
#include <new>
#include <system_error>

#include "sluice/io/call/blocking.hpp"
#include "sluice/io/call/signal_set.hpp"
#include "sluice/io/call/sigpipe_guard.hpp"
#include "sluice/io/loop/attempt.hpp"
#include "sluice/io/loop/registration.hpp"

namespace sluice::io {

using detail::operation_record;

void perform_blocking(operation_record& op) noexcept {
    ENSURE(op.kind == operation_kind::barrier or is_transfer(op.kind), "no call carries this out");
    if (op.kind == operation_kind::barrier) {
        const barrier_range range{.offset = op.offset, .length = requested_bytes(op)};
        if (auto done = barrier_blocking(op.target->native, op.durability, range, {}); not done) {
            op.error_code = done.error().code();
        }
        return;
    }
    const auto moved =
        transfer_blocking(op.target->native, direction_of(op.kind), {op.pieces, op.piece_count}, op.offset,
                          {}, amount_of(op.kind), op.transferred);
    if (moved) {
        op.transferred = *moved;
    } else {
        op.error_code = moved.error().code();
    }
}

result<std::unique_ptr<worker_pool>> worker_pool::create(std::size_t threads, listener& notified) noexcept {
    ENSURE(threads != 0, "operations would wait for no thread");
    try {
        std::unique_ptr<worker_pool> pool(new worker_pool(notified));
        const blocked_signals inherited(receivable_signals());
        for (std::size_t i = 0; i < threads; ++i) {
            auto& fresh = *pool->workers_.emplace_back(std::make_unique<worker>());
            fresh.thread = std::thread([&pool = *pool, &fresh] { pool.work(fresh); });
        }
        return pool;
    } catch (const std::system_error& refused) {
        return failure({refused.code().value(), "start a worker thread"});
    } catch (const std::bad_alloc&) {
        return failure({ENOMEM, "start a worker thread"});
    }
}

worker_pool::~worker_pool() {
    for (auto& each : workers_) {
        ENSURE(each->load == 0, "destroyed while operations are with its threads");
        each->stopping.store(true, std::memory_order_relaxed);  // ordered by the release below
        each->posted.fetch_add(1, std::memory_order_release);   // pairs with the acquire in work()
        each->posted.notify_one();
        if (each->thread.joinable()) each->thread.join();
    }
}

void worker_pool::submit(operation_record& op) noexcept {
    ENSURE(not workers_.empty(), "an operation would wait for no thread");
    worker* least = workers_.front().get();
    for (auto& each : workers_) {
        if (each->load < least->load) least = each.get();
    }
    ++least->load;
    op.backend_word = reinterpret_cast<std::uintptr_t>(least);
    (void)least->queue.push(op);
    least->posted.fetch_add(1, std::memory_order_release);  // pairs with the acquire in work()
    least->posted.notify_one();
}

void worker_pool::cancel(operation_record& op, int code) noexcept {
    ENSURE(code != 0, "cancelled without a cause");
    // relaxed: a request; a worker that has checked already continues.
    std::atomic_ref(op.cancel_code).store(code, std::memory_order_relaxed);
}

operation_record* worker_pool::take_done() noexcept {
    operation_record* const op = done_.pop();
    if (op == nullptr) return nullptr;
    worker& of = *reinterpret_cast<worker*>(op->backend_word);
    ENSURE(of.load != 0, "a worker has done more than it was given");
    --of.load;
    return op;
}

void worker_pool::work(worker& self) noexcept {
    const sigpipe_guard quiet;
    std::uint32_t seen = 0;
    for (;;) {
        while (operation_record* const op = self.queue.pop()) {
            ENSURE(op->backend_word == reinterpret_cast<std::uintptr_t>(&self), "another worker's operation");
            const int cancelled = std::atomic_ref(op->cancel_code).load(std::memory_order_relaxed);
            if (cancelled != 0) {
                if (op->transferred == 0) op->error_code = cancelled;
            } else {
                perform_blocking(*op);
            }
            (void)done_.push(*op);
            notified_.work_done();
        }
        // Pairs with submit().
        const std::uint32_t now = self.posted.load(std::memory_order_acquire);
        if (now == seen) {
            self.posted.wait(now, std::memory_order_acquire);
            continue;
        }
        seen = now;
        if (self.stopping.load(std::memory_order_relaxed)) return;
    }
}

}  // namespace sluice::io
