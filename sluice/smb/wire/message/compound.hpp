#pragma once

#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

inline constexpr std::size_t compound_alignment = 8;

/// Takes the messages of a frame one by one ([MS-SMB2] 3.3.5.2.7). Whether related messages may follow
/// unrelated ones is the server's to judge. The frame outlives the reader. Thread safety: none of its own.
class compound_reader {
public:
    /// `messages_max`: more than that is an error, so that a frame of headers cannot keep a server busy.
    compound_reader(bytes_view frame, std::size_t messages_max) noexcept
        : rest_(frame), messages_left_(messages_max) {}

    /// Whether the last message has been taken, or an error was met.
    [[nodiscard]] bool done() const noexcept { return done_; }

    /// The next message, while not done().
    /// Errors: those of decode_header(); `misaligned` (the next header would not stand on a multiple of
    /// eight), `bad_chain` (it would stand within this one), `range_outside_message` (or outside the frame),
    /// `too_many`.
    [[nodiscard]] decoded<message_view> next() noexcept;

private:
    bytes_view rest_;
    std::size_t messages_left_;
    bool done_ = false;
};

/// How many messages the frame holds. What this has accepted a compound_reader takes apart without an error.
/// Errors: those of compound_reader::next(). Complexity: linear in the messages.
[[nodiscard]] decoded<std::size_t> count_messages(bytes_view frame, std::size_t messages_max) noexcept;

}  // namespace sluice::smb::wire
