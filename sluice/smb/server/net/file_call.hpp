#pragma once

#include <concepts>
#include <coroutine>
#include <utility>

namespace sluice::smb::server {

// Placeholder until vfs::fs_domain exists.
template <std::invocable Call>
class [[nodiscard]] file_call {
public:
    explicit file_call(Call call) noexcept : call_(std::move(call)) {}
    [[nodiscard]] static constexpr bool await_ready() noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) noexcept {}
    [[nodiscard]] auto await_resume() noexcept { return call_(); }

private:
    Call call_;
};

}  // namespace sluice::smb::server
