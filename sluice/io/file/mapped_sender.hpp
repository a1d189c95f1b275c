#pragma once

#include <algorithm>
#include <cerrno>
#include <optional>

#include "sluice/io/call/ready_call.hpp"
#include "sluice/io/file/mapped_file_handle.hpp"
#include "sluice/io/sender/sender.hpp"

namespace sluice::io {

/// The sender of async_read of a mapped file: returns pages of the map. Completes inside start().
template <read_buffers Buffers>
class mapped_read_sender final : public detail::handle_sender, private ready_call {
public:
    using result_type = io_result<Buffers>;

    mapped_read_sender() noexcept = default;
    mapped_read_sender(mapped_file_handle& from, io_request<Buffers> request, deadline within) noexcept
        : handle_sender(from, within), from_(&from), request_(request) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, operation_kind::call_in);
        op.argument = static_cast<ready_call*>(this);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure(error_of(op, "read"));
        return outcome_;
    }

private:
    std::optional<int> attempt(const native_handle&) noexcept override {
        outcome_ = from_->read(request_);
        return 0;
    }

    mapped_file_handle* from_ = nullptr;
    io_request<Buffers> request_;
    result_type outcome_;
};

/// The sender of async_write and async_write_some of a mapped file: writes through the descriptor,
/// within the reservation.
template <class Buffers, amount Wanted>
class mapped_write_sender final : private transfer_sender<Buffers, Wanted>, private ready_call {
    using transfer = transfer_sender<Buffers, Wanted>;

public:
    using result_type = io_result<Buffers>;

    mapped_write_sender() noexcept = default;
    mapped_write_sender(mapped_file_handle& to, io_request<Buffers> request, deadline within) noexcept
        : transfer(to, request, within), to_(&to) {}

    using transfer::multiplexer;

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        io_request<Buffers>& request = this->request();
        transfer::configure(op);
        if (to_ == nullptr or request.offset == no_offset) return;  // transfer fails
        if (request.offset >= to_->reserved_bytes() and bytes_in(request.buffers) != 0) {
            this->configure_as(op, operation_kind::call_out);
            op.argument = static_cast<ready_call*>(this);
            return;
        }
        const extent_type room = to_->reserved_bytes() - std::min(request.offset, to_->reserved_bytes());
        if (bytes_in(request.buffers) <= room) return;
        if constexpr (transfer::is_list) {
            request.buffers = detail::shortened(request.buffers, room);
        } else {
            request.buffers = request.buffers.first(room);
        }
        transfer::configure(op);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        result_type outcome = transfer::collect(op);
        if (outcome) to_->record_written(this->request().offset + outcome.bytes_transferred());
        return outcome;
    }

private:
    // Past the reservation.
    std::optional<int> attempt(const native_handle&) noexcept override { return EFBIG; }

    mapped_file_handle* to_ = nullptr;
};

inline mapped_read_sender<buffers_type> async_read(mapped_file_handle& from, io_request<buffers_type> request,
                                                   deadline within) noexcept {
    return {from, request, within};
}
inline mapped_read_sender<bytes_type> async_read(mapped_file_handle& from, io_request<bytes_type> request,
                                                 deadline within) noexcept {
    return {from, request, within};
}
inline mapped_write_sender<const_buffers_type, amount::all> async_write(
    mapped_file_handle& to, io_request<const_buffers_type> request, deadline within) noexcept {
    return {to, request, within};
}
inline mapped_write_sender<const_bytes_type, amount::all> async_write(mapped_file_handle& to,
                                                                      io_request<const_bytes_type> request,
                                                                      deadline within) noexcept {
    return {to, request, within};
}
inline mapped_write_sender<const_buffers_type, amount::some> async_write_some(
    mapped_file_handle& to, io_request<const_buffers_type> request, deadline within) noexcept {
    return {to, request, within};
}
inline mapped_write_sender<const_bytes_type, amount::some> async_write_some(
    mapped_file_handle& to, io_request<const_bytes_type> request, deadline within) noexcept {
    return {to, request, within};
}

}  // namespace sluice::io
