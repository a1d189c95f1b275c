#pragma once

#include <concepts>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/io/call/ready_call.hpp"
#include "sluice/io/loop/external_work.hpp"
#include "sluice/io/sender/sender.hpp"

namespace sluice::io {

/// The call of a call_sender: one attempt, its name for errors, and its result.
template <class Call>
concept user_call =
    std::derived_from<Call, ready_call> and std::move_constructible<Call> and requires(Call& call) {
        typename Call::result_type;
        { Call::name } -> std::convertible_to<const char*>;
        { call.take() } noexcept -> std::convertible_to<typename Call::result_type>;
    };

/// A sender for a user-defined operation on a descriptor: a system call (an ioctl, a read in
/// records) that is attempted at once, and again whenever the descriptor is ready in one
/// direction. Requests in one direction of one handle are served in the order they were started,
/// among reads and writes too. On a regular file, which is always ready, std::nullopt ends the
/// operation with EAGAIN.
///
/// The error is `{code, Call::name, descriptor}`; without an error the result is
/// that of Call::take().
/// Allocates, locks, waits, throws: never. Thread safety: as every sender.
template <user_call Call>
class call_sender : public detail::handle_sender {
public:
    using result_type = typename Call::result_type;

    call_sender() noexcept
        requires std::default_initializable<Call>
    = default;
    /// `waits_for`: in, until a read would not wait; out, until a write would not wait.
    call_sender(multiplexable_handle& target, direction waits_for, deadline within, Call call) noexcept
        : handle_sender(target, within), call_(std::move(call)), waits_for_(waits_for) {}

    void configure(operation& configured) noexcept {
        detail::operation_record& op = detail::record_of(configured);
        configure_as(op, waits_for_ == direction::in ? operation_kind::call_in : operation_kind::call_out);
        op.argument = static_cast<ready_call*>(&call_);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        const detail::operation_record& op = detail::record_of(completed);
        if (op.error_code != 0) return failure(error_of(op, Call::name));
        return call_.take();
    }

private:
    Call call_;
    direction waits_for_ = direction::in;
};

/// The work of a work_sender: created from a request for each start, its name for
/// errors, and its result.
template <class Work, class Request>
concept user_work = std::derived_from<Work, external_work> and std::constructible_from<Work, Request&> and
                    requires(Work& work) {
                        typename Work::result_type;
                        { Work::name } -> std::convertible_to<const char*>;
                        { work.take() } noexcept -> std::convertible_to<typename Work::result_type>;
                    };

/// A sender for a user-defined operation that completes elsewhere: in a device with its own
/// queue of completions, in another thread, or in a library. Operations complete in the
/// order of their works.
///
/// Every start() creates a Work from the request. The error is `{code, Work::name}`; without an
/// error the result is that of Work::take(). Allocates, locks, waits, throws: never. Thread safety:
/// as every sender; see external_work for what the work may do on which thread.
template <class Request, user_work<Request> Work>
class work_sender {
public:
    using result_type = typename Work::result_type;

    work_sender(io_multiplexer& multiplexer, deadline within, Request request) noexcept
        : multiplexer_(&multiplexer), within_(within), request_(std::move(request)) {}

    [[nodiscard]] io_multiplexer& multiplexer() const noexcept { return *multiplexer_; }

    void configure(operation& configured) noexcept {
        configure_external(configured, *multiplexer_, work_.emplace(request_), within_);
    }
    [[nodiscard]] result_type collect(const operation& completed) noexcept {
        if (const int code = code_of(completed); code != 0) return failure({code, Work::name});
        return (*work_).take();
    }

private:
    io_multiplexer* multiplexer_;
    deadline within_;
    Request request_;
    work_room<Work> work_;
};

}  // namespace sluice::io
