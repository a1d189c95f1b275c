#pragma once

#include <memory>
#include <optional>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/server/buffer_pool.hpp"
#include "sluice/smb/wire/frame.hpp"
#include "sluice/smb/wire/header.hpp"

namespace sluice::smb::server {

class session;

/// A reply while it is made: room for header and body, and a payload that is sent behind them from where it
/// is.
///
/// In front of the header is room for a frame's length, so that the first reply of a frame needs no piece
/// more. Thread safety: the loop's thread.
class reply {
public:
    explicit reply(buffer_pool& buffers) noexcept : buffers_(buffers) {}

    /// Makes room for a body of up to `bytes_max` and returns what to encode it with, begun at the header.
    /// Null if there is no memory. Again: begins anew. Allocates: a buffer of the pool.
    [[nodiscard]] byte_writer* begin(std::size_t bytes_max) noexcept;
    /// Bytes that follow the body.
    void attach(pool_buffer payload) noexcept { payload_ = std::move(payload); }
    /// Forgets body and payload: what is said is an error.
    void discard() noexcept;

    [[nodiscard]] bool has_body() const noexcept { return writer_.has_value(); }
    [[nodiscard]] buffer_pool& buffers() noexcept { return buffers_; }

    /// Ends the body. `head()` and `payload()` are what is to be sent, the header still zero.
    /// False if more was encoded than there is room for: a bug in the caller's count.
    [[nodiscard]] bool finish() noexcept;
    [[nodiscard]] pool_buffer& head() noexcept { return head_; }
    [[nodiscard]] pool_buffer& payload() noexcept { return payload_; }

private:
    buffer_pool& buffers_;
    pool_buffer head_;
    pool_buffer payload_;
    std::optional<byte_writer> writer_;
};

/// A reply that has its header and is to be signed and sent.
struct finished_reply {
    pool_buffer head;  // room for a frame's length, header, body
    pool_buffer payload;
    std::shared_ptr<session> signed_by;  // null: not signed
};

}  // namespace sluice::smb::server
