#include "sluice/io/loop/io_multiplexer.hpp"

#include <limits>
#include <new>

#include "sluice/io/call/limits.hpp"
#include "sluice/io/loop/known_calls.hpp"

namespace sluice::io {

io_multiplexer::io_multiplexer() noexcept : inline_left_(limits::inline_completions_max) {
    no_handle_.multiplexer = words_.multiplexer = this;
    words_.native.kind = handle_kind::file;
}

io_multiplexer::~io_multiplexer() {
    ENSURE(pending_ == 0,
           "a multiplexer is destroyed while operations are pending on it: cancel and complete them");
    ENSURE(queued_ == 0, "operations of the back end are counted that do not exist");
    ENSURE(registered_buffers_ == 0, "a registered buffer must go before its multiplexer");
    ENSURE(completing_.load(std::memory_order_relaxed) == 0,
           "a back end's destructor begins with let_finish()");
    while (posted_item* item = posted_.pop())
        item->invoke();
    std::size_t detached = 0;
    while (free_.pop_front() != nullptr)
        ++detached;
    ENSURE(detached == chunks_.size() * limits::registrations_per_chunk,
           "a multiplexer is destroyed while handles are attached to it: close or detach them");
}

void io_multiplexer::become_owner() noexcept {
    // relaxed: other threads only compare it with their own marks, which it never equals.
    ENSURE(owner_.load(std::memory_order_relaxed) == nullptr,
           "a multiplexer belongs to one thread: use post() or an atomic_ sender from another");
    owner_.store(&thread_mark_, std::memory_order_relaxed);
}

registration* io_multiplexer::take_registration() noexcept {
    if (free_.empty()) {
        std::unique_ptr<registration[]> chunk(new (std::nothrow)
                                                  registration[limits::registrations_per_chunk]);
        if (chunk == nullptr) return nullptr;
        const std::size_t first = chunks_.size() * limits::registrations_per_chunk;
        ENSURE(first <= std::numeric_limits<std::uint32_t>::max() - limits::registrations_per_chunk,
               "a slot has a number of 32 bits");
        for (std::size_t i = 0; i < limits::registrations_per_chunk; ++i) {
            registration& fresh = chunk[i];
            fresh.multiplexer = this;
            fresh.is_shared = sharing_ != nullptr;
            fresh.slot = static_cast<std::uint32_t>(first + i);
            fresh.side(direction::out).which = direction::out;
            for (auto& half : fresh.halves)
                half.owner = &fresh;
            free_.push_back(fresh);
        }
        chunks_.push_back(std::move(chunk));
    }
    return free_.pop_front();
}

result<registration*> io_multiplexer::attach(const native_handle& native) noexcept {
    const entry in(*this);
    registration* const fresh = take_registration();
    if (fresh == nullptr) return failure({ENOMEM, "attach to multiplexer", native.descriptor});
    ENSURE(fresh->pending == 0 and not fresh->native.is_valid(),
           "a record in use is in the list of free ones");
    fresh->native = native;
    choose_calls(*fresh);
    if (auto attached = backend_attach(*fresh); not attached) {
        free_.push_front(*fresh);
        return failure(attached.error());
    }
    return fresh;
}

result<void> io_multiplexer::detach(registration& attached) noexcept {
    const entry in(*this);
    ENSURE(attached.multiplexer == this, "a handle is detached from the multiplexer that it is attached to");
    if (attached.pending != 0) return failure({EBUSY, "detach from multiplexer", attached.native.descriptor});
    backend_detach(attached);
    for (auto& half : attached.halves) {
        ENSURE(half.queue.empty() and half.in_flight == 0, "operations are queued that were not counted");
        if (half.dirty_link.is_linked()) dirty_.erase(half);
        half.is_armed = half.never_speculate = false;
        half.pause = half.skipped = 0;
        half.backend = nullptr;
    }
    if (sharing_ != nullptr) publish_work();
    attached.native = {};
    attached.backend_word = 0;
    free_.push_front(attached);
    return {};
}

}  // namespace sluice::io
