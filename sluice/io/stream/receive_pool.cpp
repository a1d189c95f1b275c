#include "sluice/io/stream/receive_pool.hpp"

#include <limits>
#include <new>

#include "sluice/io/loop/engine.hpp"

namespace sluice::io {
namespace detail {

receive_slots::~receive_slots() {
    ENSURE(in_use_ == 0, "a pool must outlive the buffers of its receivers");
    ENSURE(waiting_.empty(), "a pool must outlive its streams");
    if (group_) detail::engine::forget_receive_buffers(multiplexer_, *group_);
}

result<void> receive_slots::open() noexcept {
    ENSURE(in_use_ == 0 and memory_ == nullptr, "opened once, before its first use");
    // Not initialised: a buffer occupies memory only after the first receive into it.
    memory_.reset(new (std::nothrow) std::byte[count_ * bytes_each_]);
    next_free_.reset(new (std::nothrow) std::uint32_t[count_]);
    if (memory_ == nullptr or next_free_ == nullptr) return failure({ENOMEM, "make a receive pool"});
    for (std::uint32_t i = 0; i < count_; ++i)
        next_free_[i] = i + 1 < count_ ? i + 1 : none;
    first_free_ = 0;
    group_ = detail::engine::provide_receive_buffers(multiplexer_, {memory_.get(), count_ * bytes_each_},
                                                     bytes_each_);
    return {};
}

std::uint32_t receive_slots::take() noexcept {
    ENSURE(not group_);
    const std::uint32_t index = first_free_;
    if (index == none) return none;
    ENSURE(index < count_ and in_use_ < count_, "more buffers are free than there are");
    first_free_ = next_free_[index];
    ++in_use_;
    return index;
}

void receive_slots::release(std::uint32_t index) noexcept {
    ENSURE(index < count_ and in_use_ > 0, "no buffer of this pool's");
    if (group_) {
        --in_use_;
        detail::engine::return_receive_buffer(multiplexer_, *group_, index);
        wake_another();
    } else if (buffer_waiter* const stream = waiting_.front()) {
        // Passed on instead of freed, so that no other stream is faster.
        stop_waiting(*stream);
        stream->resume(index);
    } else {
        --in_use_;
        next_free_[index] = first_free_;
        first_free_ = index;
    }
}

void receive_slots::wait(buffer_waiter& stream) noexcept {
    ENSURE(in_use_ == count_, "a stream waits for a buffer while some are free");
    waiting_.push_back(stream);
}

void receive_slots::stop_waiting(buffer_waiter& stream) noexcept {
    waiting_.erase(stream);
}

void receive_slots::wake_another() noexcept {
    ENSURE(in_use_ <= count_, "more buffers are out than the pool has");
    buffer_waiter* const stream = waiting_.front();
    if (not group_ or stream == nullptr or in_use_ == count_) return;
    stop_waiting(*stream);
    stream->resume(none);
}

}  // namespace detail

result<receive_pool> receive_pool::make(io_multiplexer& multiplexer, receive_pool_size size) noexcept {
    const bool is_sane = size.count != 0 and size.count <= count_max and size.bytes_each != 0 and
                         size.bytes_each <= std::numeric_limits<std::uint32_t>::max() / 2;
    if (not is_sane) return failure({EINVAL, "make a receive pool"});
    if (multiplexer.is_for_threads())
        return failure({EOPNOTSUPP,
                        "make a receive pool on a multiplexer for several threads; read into buffers "
                        "that you allocate, or make a multiplexer for one thread"});
    std::unique_ptr<detail::receive_slots> slots(
        new (std::nothrow) detail::receive_slots(multiplexer, size.count, size.bytes_each));
    if (slots == nullptr) return failure({ENOMEM, "make a receive pool"});
    if (auto opened = slots->open(); not opened) return failure(opened.error());
    return receive_pool(std::move(slots));
}

}  // namespace sluice::io
