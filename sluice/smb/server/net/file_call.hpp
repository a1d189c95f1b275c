#pragma once

#include <concepts>
#include <coroutine>
#include <expected>
#include <optional>
#include <utility>

#include "sluice/smb/server/core/latch.hpp"
#include "sluice/smb/wire/nt_status.hpp"

namespace sluice::smb::server {

class request;

/// Returns the status for a request whose call was withdrawn.
[[nodiscard]] wire::nt_status status_of_withdrawn(const request& by) noexcept;

/// The outcome of a call that did not begin: an nt_status, or a std::expected with one.
template <class Outcome>
[[nodiscard]] Outcome withdrawn_outcome(wire::nt_status why) noexcept {
    if constexpr (std::same_as<Outcome, wire::nt_status>) {
        return why;
    } else {
        return std::unexpected(why);
    }
}

/// Releases the latch around a file-system call, whether it runs on the loop or on a worker: the caller holds
/// it, once, before and after. `Awaiter` is that of fs_domain::run. Loop-owned.
template <class Awaiter>
class [[nodiscard]] unlatched_call {
public:
    unlatched_call(server_latch& latch, Awaiter call) noexcept : latch_(latch), call_(std::move(call)) {}
    unlatched_call(const unlatched_call&) = delete;
    unlatched_call& operator=(const unlatched_call&) = delete;

    [[nodiscard]] bool await_ready() noexcept {
        latch_.unlock_entirely();
        return call_.await_ready();
    }
    void await_suspend(std::coroutine_handle<> waiter) noexcept {
        has_suspended_ = true;
        work_ = loop_activity::current();
        call_.await_suspend(waiter);
    }
    [[nodiscard]] auto await_resume() noexcept {
        if (has_suspended_) loop_activity::begin(work_);  // the loop has served others since then
        latch_.lock();
        return call_.await_resume();
    }

private:
    server_latch& latch_;
    Awaiter call_;
    bool has_suspended_ = false;
    std::optional<loop_work> work_;
};

/// The awaiter of request::call. `Awaiter` gives a std::optional, which is empty if the call was withdrawn.
/// Loop-owned.
template <class Awaiter>
class [[nodiscard]] file_call {
public:
    file_call(const request& by, server_latch& latch, Awaiter call) noexcept
        : by_(by), call_(latch, std::move(call)) {}

    [[nodiscard]] bool await_ready() noexcept { return call_.await_ready(); }
    void await_suspend(std::coroutine_handle<> waiter) noexcept { call_.await_suspend(waiter); }
    [[nodiscard]] auto await_resume() noexcept {
        auto outcome = call_.await_resume();
        using value = std::remove_cvref_t<decltype(*outcome)>;
        return outcome ? *std::move(outcome) : withdrawn_outcome<value>(status_of_withdrawn(by_));
    }

private:
    const request& by_;
    unlatched_call<Awaiter> call_;
};

}  // namespace sluice::smb::server
