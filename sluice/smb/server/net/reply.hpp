#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sluice/base/buffer_pool.hpp"
#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/auth/cipher/signing.hpp"
#include "sluice/smb/server/net/reply_payload.hpp"
#include "sluice/smb/server/net/unsent_grant.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/header.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::server {

class channel;
class open;

/// A reply in preparation: room for header and body, and a payload that is sent after them from
/// where it is.
///
/// In front of the header is room for a frame's length, so that the first reply of a frame needs no
/// piece more. Thread safety: the loop's thread.
class reply {
public:
    explicit reply(buffer_source buffers) noexcept : buffers_(buffers) {}

    /// Makes room for a body of up to `bytes_max` and returns what to encode it with, begun
    /// at the header. Null if there is no memory. Starts again if called again. Allocates:
    /// a buffer of the pool.
    [[nodiscard]] byte_writer* begin(std::size_t bytes_max) noexcept;
    /// Bytes that follow the body.
    void attach(reply_payload payload) noexcept { payload_ = std::move(payload); }
    /// Discards body and payload: the reply is an error.
    void discard() noexcept;

    [[nodiscard]] bool has_body() const noexcept { return writer_.has_value(); }
    [[nodiscard]] const buffer_source& buffers() const noexcept { return buffers_; }

    /// Ends the body. `head()` and `payload()` are the message to send, the header still zero.
    /// Returns false if more was encoded than there is room for: a bug in the caller's count.
    [[nodiscard]] bool finish() noexcept;
    [[nodiscard]] pool_buffer& head() noexcept { return head_; }
    [[nodiscard]] reply_payload& payload() noexcept { return payload_; }

private:
    buffer_source buffers_;
    pool_buffer head_;
    reply_payload payload_;
    std::optional<byte_writer> writer_;
};

/// A signer with the permit for one reply.
struct reply_signer {
    std::shared_ptr<auth::signer> with;
    auth::signing_permit once;
};

/// A reply that has its header and is to be signed and sent.
struct finished_reply {
    pool_buffer head;  // room for a frame's length, header, body
    reply_payload payload;
    std::optional<reply_signer> signed_by;   // none: not signed
    std::shared_ptr<channel> hashed_by;      // not null: goes into the keys being
                                             // made, with its signature
    std::optional<unsent_grant> grants{};    // ends when the reply has been sent
    std::shared_ptr<open> compressed_for{};  // not null: compressed if that is worthwhile

    [[nodiscard]] std::size_t message_bytes() const noexcept {
        return head.size() - wire::frame_prefix_bytes + payload.size();
    }
    /// Returns the number of zeros after a message that others may follow.
    [[nodiscard]] std::size_t padding_bytes() const noexcept {
        return -message_bytes() & (wire::compound_alignment - 1);
    }
    [[nodiscard]] std::size_t padded_bytes() const noexcept { return message_bytes() + padding_bytes(); }
};

/// The replies to the messages of one frame that are not sent yet: they go together, as many as a
/// frame holds. Allocates: nothing, if the vector that it gets, and returns, has room from the time
/// before.
class reply_batch {
public:
    explicit reply_batch(std::vector<finished_reply> room) noexcept : ready_(std::move(room)) {
        ENSURE(ready_.empty());
    }
    /// Returns whether `one` fits in as well, so that the frame, perhaps encrypted, has a valid
    /// length.
    [[nodiscard]] bool has_room_for(const finished_reply& one) const noexcept {
        return one.padded_bytes() <= wire::frame_bytes_max - wire::transform_header_bytes - bytes_;
    }
    void add(finished_reply&& one);
    [[nodiscard]] std::span<finished_reply> ready() noexcept { return ready_; }
    /// They have been sent.
    void clear() noexcept;
    /// Returns the vector, once all of them have been sent.
    [[nodiscard]] std::vector<finished_reply> room() && noexcept { return std::move(ready_); }

    [[nodiscard]] bool empty() const noexcept { return ready_.empty(); }
    /// Returns the size of the replies to the whole frame so far, sent or not.
    [[nodiscard]] std::size_t bytes_of_all() const noexcept { return bytes_of_all_; }

private:
    std::vector<finished_reply> ready_;
    std::size_t bytes_ = 0;
    std::size_t bytes_of_all_ = 0;
};

}  // namespace sluice::smb::server
