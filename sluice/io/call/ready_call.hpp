#pragma once

#include <optional>

#include "sluice/io/call/handle.hpp"

namespace sluice::io {

/// One attempt at an operation that waits for a descriptor to be ready; see call_sender.
class ready_call {
public:
    /// Makes the system call, without waiting. Returns 0 or the errno value the operation ends
    /// with, or std::nullopt if it would have to wait. `on` may lack O_NONBLOCK: the call itself
    /// must not wait. Called by the multiplexer, once or more for each start(), never by two
    /// threads at once. It must not call the multiplexer. Blocks: must not.
    [[nodiscard]] virtual std::optional<int> attempt(const native_handle& on) noexcept = 0;

protected:
    ready_call() noexcept = default;
    ready_call(const ready_call&) noexcept = default;
    ready_call& operator=(const ready_call&) noexcept = default;
    ~ready_call() = default;
};

}  // namespace sluice::io
