#include "sluice/io/io_handle.hpp"

#include "sluice/io/blocking.hpp"
#include "sluice/io/io_multiplexer.hpp"
#include "sluice/io/sender.hpp"

namespace sluice::io {

io_handle& io_handle::operator=(io_handle&& other) noexcept {
    if (this != &other) {
        detach_for_ever();
        handle::operator=(std::move(other));
        registration_ = std::exchange(other.registration_, nullptr);
    }
    return *this;
}

io_handle::~io_handle() {
    detach_for_ever();
}

void io_handle::detach_for_ever() noexcept {
    if (registration_ == nullptr) return;
    const auto detached = set_multiplexer(nullptr);
    ENSURE(detached.has_value(),
           "a handle is closed while i/o is pending on it: cancel and complete it first");
}

io_multiplexer* io_handle::multiplexer() const noexcept {
    return registration_ != nullptr ? registration_->multiplexer : nullptr;
}

result<void> io_handle::set_multiplexer(io_multiplexer* multiplexer) noexcept {
    if (registration_ != nullptr) {
        if (auto detached = registration_->multiplexer->detach(*registration_); not detached) return detached;
        registration_ = nullptr;
    }
    if (multiplexer == nullptr) return {};
    auto attached = multiplexer->attach(native_);
    if (not attached) return failure(attached.error());
    registration_ = *attached;
    return {};
}

result<void> io_handle::set_multiplexer() noexcept {
    auto own = this_thread::multiplexer();
    if (not own) return failure(own.error());
    return set_multiplexer(*own);
}

result<void> io_handle::close() noexcept {
    detach_for_ever();
    return handle::close();
}

native_handle io_handle::release() noexcept {
    detach_for_ever();
    return handle::release();
}

namespace {

template <class Buffers>
std::span<const buffer> pieces_of(const Buffers& buffers, buffer& single) noexcept {
    if constexpr (std::same_as<Buffers, buffers_type> or std::same_as<Buffers, const_buffers_type>) {
        return {reinterpret_cast<const buffer*>(buffers.data()), buffers.size()};
    } else {
        single = {const_cast<std::byte*>(buffers.data()), buffers.size()};
        return {&single, 1};
    }
}

template <class Buffers>
io_result<Buffers> transfer(const native_handle& native, io_request<Buffers>& request,
                            deadline within) noexcept {
    constexpr direction which = read_buffers<Buffers> ? direction::in : direction::out;
    buffer single;
    const auto moved =
        transfer_blocking(native, which, pieces_of(request.buffers, single), request.offset, within);
    if (not moved) [[unlikely]]
        return failure(moved.error());
    if constexpr (requires { request.buffers[0].size(); }) {
        return detail::shortened(request.buffers, *moved);
    } else {
        return request.buffers.first(*moved);
    }
}

}  // namespace

io_result<buffers_type> io_handle::read(io_request<buffers_type> request, deadline within) noexcept {
    return transfer(native_, request, within);
}

io_result<bytes_type> io_handle::read(io_request<bytes_type> request, deadline within) noexcept {
    return transfer(native_, request, within);
}

io_result<const_buffers_type> io_handle::write(io_request<const_buffers_type> request,
                                               deadline within) noexcept {
    return transfer(native_, request, within);
}

io_result<const_bytes_type> io_handle::write(io_request<const_bytes_type> request, deadline within) noexcept {
    return transfer(native_, request, within);
}

io_result<const_buffers_type> io_handle::barrier(barrier_kind kind,
                                                 io_request<const_buffers_type> range) noexcept {
    std::size_t length = 0;
    for (const auto& piece : range.buffers)
        length += piece.size();
    if (auto done = barrier_blocking(native_, kind, range.offset, length); not done)
        return failure(done.error());
    return range.buffers;
}

}  // namespace sluice::io
