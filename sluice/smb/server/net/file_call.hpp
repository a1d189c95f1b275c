#pragma once

#include <concepts>
#include <coroutine>
#include <expected>
#include <optional>
#include <utility>

#include "sluice/smb/server/core/loop_wait.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

class request;

/// Returns the status for a request whose call was cancelled.
[[nodiscard]] wire::nt_status status_of_cancelled_call(const request& by) noexcept;

/// The outcome of a call that did not begin: an nt_status, or a std::expected with one.
template <class Outcome>
[[nodiscard]] Outcome cancelled_outcome(wire::nt_status why) noexcept {
    if constexpr (std::same_as<Outcome, wire::nt_status>) {
        return why;
    } else {
        return std::unexpected(why);
    }
}

/// The awaiter of request::call. `Awaiter` gives a std::optional, which is empty if the call was
/// cancelled. Loop-owned.
template <class Awaiter>
class [[nodiscard]] file_call {
public:
    file_call(const request& by, Awaiter call) noexcept : by_(by), call_(std::move(call)) {}

    [[nodiscard]] bool await_ready() noexcept { return call_.await_ready(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { call_.await_suspend(waiter); }
    [[nodiscard]] auto await_resume() noexcept {
        auto outcome = call_.await_resume();
        using value = std::remove_cvref_t<decltype(*outcome)>;
        return outcome ? *std::move(outcome) : cancelled_outcome<value>(status_of_cancelled_call(by_));
    }

private:
    const request& by_;
    within_work_awaiter<Awaiter> call_;
};

}  // namespace sluice::smb::server
