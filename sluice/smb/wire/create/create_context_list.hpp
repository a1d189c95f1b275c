#pragma once

#include <optional>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/decode_error.hpp"

namespace sluice::smb::wire {

/// One SMB2_CREATE_CONTEXT, [MS-SMB2] 2.2.13.2: a name of four or sixteen bytes, and its data.
struct create_context {
    bytes_view name;
    bytes_view data;

    [[nodiscard]] friend bool operator==(const create_context&, const create_context&) noexcept = default;
};

/// The largest number of contexts that is accepted. Clients send about six.
inline constexpr std::size_t create_contexts_max = 64;

/// A reader that returns the contexts of a list one by one. The bytes outlive the reader. Thread
/// safety: none of its own.
class create_context_reader {
public:
    explicit create_context_reader(bytes_view list) noexcept : rest_(list), done_(list.empty()) {}

    [[nodiscard]] bool done() const noexcept { return done_; }

    /// Returns the next context, while not done(). An error ends the list.
    /// Errors: `truncated`; `misaligned` or `bad_chain` (the next context would not begin on a
    /// multiple of eight, or within this one's fixed part); `range_outside_message` (next, name or
    /// data beyond the list or overlapping the next context; data before the name's end); `missing`
    /// (a name of less than four bytes); `too_many`.
    [[nodiscard]] decoded<create_context> next() noexcept;

private:
    bytes_view rest_;
    std::size_t taken_ = 0;
    bool done_;
};

/// A writer of a list of contexts. The first one starts at the writer's position, a multiple of
/// eight.
class create_context_writer {
public:
    explicit create_context_writer(byte_writer& writer) noexcept
        : writer_(writer), start_(writer.position()) {}

    void put(const create_context& context) noexcept;

    /// Returns the length of the list so far.
    [[nodiscard]] std::size_t list_bytes() const noexcept { return writer_.position() - start_; }

private:
    byte_writer& writer_;
    std::size_t start_;
    std::size_t last_ = 0;
    std::optional<reserved_field<le32>> next_of_last_;
};

}  // namespace sluice::smb::wire
