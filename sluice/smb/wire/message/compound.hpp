#pragma once

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

inline constexpr std::size_t compound_alignment = 8;

/// A reader that returns the messages of a frame one by one ([MS-SMB2] 3.3.5.2.7). The server
/// checks whether related messages may follow unrelated ones. The frame outlives the reader. Thread
/// safety: none of its own.
class compound_reader {
public:
    /// `messages_max` limits the number of messages, so that a frame of headers cannot keep a
    /// server busy.
    compound_reader(bytes_view frame, std::size_t messages_max) noexcept
        : rest_(frame), messages_left_(messages_max) {}

    /// Returns whether the last message has been returned, or an error has occurred.
    [[nodiscard]] bool done() const noexcept { return done_; }

    /// Returns the next message, while not done().
    /// Errors: those of decode_header(); `misaligned` (the next header would not be at a multiple
    /// of eight), `bad_chain` (it would be inside this message), `range_outside_message` (or
    /// outside the frame), `too_many`.
    [[nodiscard]] decoded<message_view> next() noexcept;

private:
    bytes_view rest_;
    std::size_t messages_left_;
    bool done_ = false;
};

/// Returns the number of messages in the frame. A compound_reader parses an accepted frame without
/// an error. Errors: those of compound_reader::next(). Complexity: linear in the messages.
[[nodiscard]] decoded<std::size_t> count_messages(bytes_view frame, std::size_t messages_max) noexcept;

}  // namespace sluice::smb::wire
