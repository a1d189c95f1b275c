#include "sluice/smb/wire/message/compound.hpp"

namespace sluice::smb::wire {
namespace {

/// Returns the length of the message at the front of `rest`, whose header is `header`.
decoded<std::size_t> message_length(bytes_view rest, const header& header) noexcept {
    const std::size_t next = header.next_command_bytes;
    if (next == 0) return rest.size();
    if (next % compound_alignment != 0) return std::unexpected(decode_error::misaligned);
    if (next < header_bytes) return std::unexpected(decode_error::bad_chain);
    if (next >= rest.size()) return std::unexpected(decode_error::range_outside_message);
    return next;
}

}  // namespace

decoded<message_view> compound_reader::next() noexcept {
    ENSURE(!done_);
    done_ = true;  // unless there is a further message
    const auto header = decode_header(rest_);
    if (!header) return std::unexpected(header.error());
    if (messages_left_ == 0) return std::unexpected(decode_error::too_many);
    const auto length = message_length(rest_, *header);
    if (!length) return std::unexpected(length.error());

    const auto message = message_view::of(*rest_.first(*length));
    rest_ = *rest_.from(*length);
    --messages_left_;
    done_ = header->next_command_bytes == 0;
    return message;
}

decoded<std::size_t> count_messages(bytes_view frame, std::size_t messages_max) noexcept {
    std::size_t count = 0;
    for (compound_reader messages(frame, messages_max); !messages.done(); ++count) {
        if (const auto message = messages.next(); !message) return std::unexpected(message.error());
    }
    return count;
}

}  // namespace sluice::smb::wire
