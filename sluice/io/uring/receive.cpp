// Receives into buffers that the kernel has picked; most of them multishot: one
// submission, many completions.

#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "sluice/io/uring/backend.hpp"

namespace sluice::io::uring {

using detail::operation_record;

void unmap::operator()(void* shared) const noexcept {
    ENSURE(::munmap(shared, bytes) == 0);
}

void buffer_group::give(std::uint32_t index) noexcept {
    ENSURE(index * bytes_each + bytes_each <= memory.size(), "no buffer of this group");
    io_uring_buf_ring_add(shared.get(), memory.data() + index * bytes_each, static_cast<unsigned>(bytes_each),
                          static_cast<std::uint16_t>(index), static_cast<int>(entries - 1), 0);
    io_uring_buf_ring_advance(shared.get(), 1);
}

// --- the buffers

std::optional<unsigned> multiplexer::provide_receive_buffers(std::span<std::byte> memory,
                                                             std::size_t bytes_each) noexcept {
    if (is_for_threads()) return std::nullopt;
    // Multishot receive came with zero-copy sends, in 6.0, and has no probe of its own.
    const auto place = std::find(groups_.begin(), groups_.end(), nullptr);
    if (not has_zero_copy_ or place == groups_.end()) return std::nullopt;
    const std::size_t count = memory.size() / bytes_each;
    ENSURE(count != 0 and count * bytes_each == memory.size(), "memory for whole buffers");
    std::unique_ptr<buffer_group> made(new (std::nothrow) buffer_group(memory, bytes_each));
    if (made == nullptr) return std::nullopt;
    made->entries = static_cast<unsigned>(std::bit_ceil(count));
    made->arrivals.reset(new (std::nothrow) buffer_group::arrival[count]);
    const std::size_t bytes = made->entries * sizeof(io_uring_buf);
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return std::nullopt;
    made->shared = {static_cast<io_uring_buf_ring*>(at), unmap{bytes}};
    const auto name = static_cast<std::uint16_t>(place - groups_.begin());
    if (made->arrivals == nullptr or not ring_.register_provided(made->shared.get(), made->entries, name))
        return std::nullopt;
    for (std::uint32_t i = 0; i < count; ++i)
        made->give(i);
    *place = std::move(made);
    return name;
}

void multiplexer::return_receive_buffer(unsigned group, std::uint32_t index) noexcept {
    ENSURE(group < groups_.size(), "no group of this multiplexer");
    groups_[group]->give(index);
}

void multiplexer::forget_receive_buffers(unsigned group) noexcept {
    ENSURE(group < groups_.size(), "no group of this multiplexer");
    // Refused on a thread that is not the owner: then the name stays in use, and the memory shared
    // with the kernel mapped.
    if (ring_.unregister_provided(static_cast<std::uint16_t>(group))) groups_[group].reset();
}

// --- giving

// Returns false if the ring is full.
bool multiplexer::queue_receive(half_state& state) noexcept {
    registration::half& half = *state.half;
    ENSURE(half.in_flight == 0, "one receive of a socket at a time");
    operation_record& front = *half.queue.front();
    const auto& request = *static_cast<const receive_request*>(front.argument);
    if (finish_receive(state)) return true;
    if (not state.is_multishot and request.stops) {
        state.has_ended = true;
        state.multishot_end = ECANCELED;
        return finish_receive(state);
    }
    if (not state.is_multishot and not arm_receive(state, request)) return false;
    state.in_flight_as = address(completion_target::receive, &state);
    half.in_flight = 1;
    front.at = operation_record::stage::in_flight;
    if (request.stops) backend_cancel(front);
    return true;
}

bool multiplexer::arm_receive(half_state& state, const receive_request& request) noexcept {
    ENSURE(not state.is_multishot and state.oldest_arrived == buffer_group::none,
           "armed while the kernel receives, or while buffers wait to be taken");
    io_uring_sqe* const entry = ring_.next();
    if (entry == nullptr) return false;
    const int descriptor = state.half->owner->native.descriptor;
    if (request.once) {
        io_uring_prep_recv(entry, descriptor, nullptr, 0, 0);
    } else {
        io_uring_prep_recv_multishot(entry, descriptor, nullptr, 0, 0);
    }
    // Only when data has arrived: the kernel selects a buffer first and, if none is free, would
    // report that even for a socket without data.
    entry->ioprio |= IORING_RECVSEND_POLL_FIRST;
    name_file(*entry, *state.half->owner);
    entry->flags |= IOSQE_BUFFER_SELECT;
    entry->buf_group = static_cast<std::uint16_t>(request.group);
    entry->user_data = address(completion_target::receive, &state);
    state.receive_group = request.group;
    state.is_multishot = true;
    return true;
}

// --- completing

// Gives the oldest `receive` the next bytes, or the reason why there will be no more. Returns
// whether there was either.
bool multiplexer::finish_receive(half_state& state) noexcept {
    registration::half& half = *state.half;
    operation_record& front = *half.queue.front();
    ENSURE(front.kind == operation_kind::receive, "a buffer for an operation that receives none");
    auto& request = *static_cast<receive_request*>(front.argument);
    ENSURE(state.oldest_arrived == buffer_group::none or request.group == state.receive_group,
           "buffers of another group have arrived");
    if (state.oldest_arrived != buffer_group::none) {
        const buffer_group::arrival& arrival = groups_[request.group]->arrivals[state.oldest_arrived];
        request.index = state.oldest_arrived;
        front.transferred = arrival.bytes;
        state.oldest_arrived = arrival.next;
    } else if (state.has_ended) {
        state.has_ended = false;
        front.error_code = state.multishot_end;
    } else {
        return false;
    }
    finish_front(half);
    return true;
}

void multiplexer::finish_front(registration::half& half) noexcept {
    ENSURE(half.in_flight <= 1, "a receive or an accept is alone with the kernel");
    half.in_flight = 0;
    finish(*half.queue.pop_front());
    if (not half.queue.empty()) mark_dirty(half);
}

void multiplexer::record_arrival(half_state& state, std::uint32_t index, int bytes) noexcept {
    buffer_group& group = *groups_[state.receive_group];
    ENSURE(index * group.bytes_each < group.memory.size(), "no buffer of this group");
    if (bytes <= 0) {  // a buffer was picked but not used
        group.give(index);
        return;
    }
    group.arrivals[index] = {.bytes = static_cast<std::uint32_t>(bytes), .next = buffer_group::none};
    if (state.oldest_arrived == buffer_group::none) {
        state.oldest_arrived = index;
    } else {
        group.arrivals[state.newest_arrived].next = index;
    }
    state.newest_arrived = index;
}

void multiplexer::on_receive(half_state& state, int outcome, unsigned flags) noexcept {
    registration::half& half = *state.half;
    ENSURE(state.is_multishot, "a completion of a receive that is over");
    if ((flags & IORING_CQE_F_BUFFER) != 0) record_arrival(state, flags >> IORING_CQE_BUFFER_SHIFT, outcome);
    if ((flags & IORING_CQE_F_MORE) == 0) {
        state.is_multishot = false;
        if (state.cancel_link.is_linked()) cancelled_.erase(state);
        state.has_cancelled = false;
        // After bytes, or an interruption, it only has to be submitted again.
        state.has_ended = outcome <= 0 and outcome != -EINTR and outcome != -EAGAIN;
        state.multishot_end = -outcome;
    }
    if (half.in_flight == 0 or finish_receive(state) or state.is_multishot) return;
    half.in_flight = 0;
    half.queue.front()->at = operation_record::stage::waiting;
    mark_dirty(half);
}

}  // namespace sluice::io::uring
