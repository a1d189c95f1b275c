#pragma once

#include "sluice/io/stream/socket_handle.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/io/task/task.hpp"

namespace sluice::smb_client_testing {

/// Fills `into`. Returns whether enough bytes arrived before the end of the stream. Suspends.
inline io::task<bool> receive_all(io::socket_handle& from, std::span<std::byte> into) {
    while (not into.empty()) {
        const auto got = co_await io::co_read(from, io::io_request<io::bytes_type>{into});
        if (not got or got.bytes_transferred() == 0) co_return false;
        into = into.subspan(got.bytes_transferred());
    }
    co_return true;
}

}  // namespace sluice::smb_client_testing
