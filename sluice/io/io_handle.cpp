#include "sluice/io/io_handle.hpp"

#include <cerrno>

#include "sluice/io/blocking.hpp"
#include "sluice/io/io_multiplexer.hpp"
#include "sluice/io/refused_handles.hpp"
#include "sluice/io/sender.hpp"
#include "sluice/io/system_call.hpp"

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

registration& io_handle::adopt() noexcept {
    io_multiplexer* const running = io_multiplexer::running_here();
    if (const auto attached = running != nullptr ? set_multiplexer(running) : set_multiplexer(); not attached)
        return detail::refused_handle(attached.error());
    return *registration_;
}

void io_handle::note_nonblocking() noexcept {
    native_.nonblocking = true;
    // With several threads, another may be looking at it now; what is not noted only costs a call.
    if (registration_ == nullptr or registration_->multiplexer->is_for_threads()) return;
    registration_->native.nonblocking = true;
    choose_calls(*registration_);
}

void io_handle::assume_in_memory(bool is_in_memory) noexcept {
    ENSURE(registration_ == nullptr,
           "the multiplexer has taken note already: say so before set_multiplexer()");
    native_.in_memory = is_in_memory;
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

template <class Piece>
io_result<std::span<Piece>> transfer_list(const native_handle& native, io_request<std::span<Piece>>& request,
                                          deadline within) noexcept {
    constexpr direction which = read_buffers<std::span<Piece>> ? direction::in : direction::out;
    // buffer and const_buffer have one layout, that of iovec.
    const std::span pieces(reinterpret_cast<const buffer*>(request.buffers.data()), request.buffers.size());
    const auto moved = transfer_blocking(native, which, pieces, request.offset, within);
    if (not moved) [[unlikely]]
        return failure(moved.error());
    return detail::shortened(request.buffers, *moved);
}

// One piece without a deadline is nearly every call, and mostly one system call is all of it.
template <class Byte>
io_result<std::span<Byte>> transfer_bytes(const native_handle& native,
                                          const io_request<std::span<Byte>>& request,
                                          deadline within) noexcept {
    constexpr direction which = read_buffers<std::span<Byte>> ? direction::in : direction::out;
    const std::size_t size = request.buffers.size();
    buffer piece(const_cast<std::byte*>(request.buffers.data()), size);
    std::size_t moved = 0;
    if (within.is_none()) [[likely]] {
        const std::ptrdiff_t first = transfer_piece(native, which, piece, request.offset, wait::yes);
        const bool takes_any = which == direction::in and native.kind != handle_kind::file;
        if (first == static_cast<std::ptrdiff_t>(size) or (first >= 0 and takes_any)) [[likely]] {
            return request.buffers.first(static_cast<std::size_t>(first));
        }
        if (first < 0 and first != -EAGAIN and first != -EINTR) {
            const bool lacks_offset =
                first == -EINVAL and request.offset == no_offset and native.kind == handle_kind::file;
            const char* const name = which == direction::in ? "read" : "write";
            return failure(
                {static_cast<int>(-first), lacks_offset ? without_offset(which) : name, native.descriptor});
        }
        if (first > 0) moved = static_cast<std::size_t>(first);
        piece = {piece.data() + moved, size - moved};
    }
    const auto rest = transfer_blocking(native, which, {&piece, 1}, request.offset + moved, within);
    if (not rest and moved == 0) return failure(rest.error());
    return request.buffers.first(moved + rest.value_or(0));
}

}  // namespace

io_result<buffers_type> io_handle::read(io_request<buffers_type> request, deadline within) noexcept {
    return transfer_list(native_, request, within);
}

io_result<bytes_type> io_handle::read(io_request<bytes_type> request, deadline within) noexcept {
    return transfer_bytes(native_, request, within);
}

io_result<const_buffers_type> io_handle::write(io_request<const_buffers_type> request,
                                               deadline within) noexcept {
    return transfer_list(native_, request, within);
}

io_result<const_bytes_type> io_handle::write(io_request<const_bytes_type> request, deadline within) noexcept {
    return transfer_bytes(native_, request, within);
}

io_result<const_buffers_type> io_handle::barrier(barrier_kind kind,
                                                 io_request<const_buffers_type> range) noexcept {
    std::size_t length = 0;
    for (const auto& piece : range.buffers)
        length += piece.size();
    const extent_type from = range.offset == no_offset ? 0 : range.offset;
    if (auto done = barrier_blocking(native_, kind, from, length); not done) return failure(done.error());
    return range.buffers;
}

}  // namespace sluice::io
