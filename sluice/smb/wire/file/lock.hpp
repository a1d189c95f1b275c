#pragma once

#include <span>

#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/file_id.hpp"
#include "sluice/smb/wire/message/header.hpp"

namespace sluice::smb::wire {

enum class lock_flags : std::uint32_t {
    none = 0,
    shared = 1,
    exclusive = 2,
    unlock = 4,
    fail_immediately = 16
};
template <>
inline constexpr bool is_bit_flags<lock_flags> = true;

/// One range of a LOCK, [MS-SMB2] 2.2.26.1. Offset and length may reach past 2^64. The server
/// rejects that with a separate status.
struct lock_element {
    std::uint64_t offset_bytes = 0;
    std::uint64_t length_bytes = 0;
    lock_flags flags = lock_flags::none;

    [[nodiscard]] friend bool operator==(const lock_element&, const lock_element&) noexcept = default;
};

/// The wire format of `lock_element`.
struct raw_lock_element {
    le64 offset;    //  0
    le64 length;    //  8
    le32 flags;     // 16
    le32 reserved;  // 20
};
static_assert(sizeof(raw_lock_element) == 24 and wire_type<raw_lock_element>);
[[nodiscard]] raw_lock_element encode_lock_element(const lock_element& element) noexcept;

/// A view of the ranges of a message. The bytes outlive it. Thread safety: a value.
class lock_list {
public:
    constexpr lock_list() noexcept = default;
    /// Constructs a list of elements in memory, for an encoder.
    explicit lock_list(std::span<const raw_lock_element> elements) noexcept
        : bytes_(std::as_bytes(elements)) {}
    /// Constructs a list of received elements. An incomplete element at the end is ignored.
    explicit lock_list(bytes_view bytes) noexcept
        : bytes_(*bytes.first(bytes.size() / sizeof(raw_lock_element) * sizeof(raw_lock_element))) {}

    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size() / sizeof(raw_lock_element); }
    [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }
    /// Returns the element at `index`, which is less than size().
    [[nodiscard]] lock_element operator[](std::size_t index) const noexcept;

    [[nodiscard]] friend bool operator==(const lock_list&, const lock_list&) noexcept = default;

private:
    bytes_view bytes_;
};

/// LOCK, [MS-SMB2] 2.2.26.
struct lock_args {
    file_id file{};
    std::uint8_t sequence_number = 0;  ///< four bits; with the index, identifies a repeated request
    std::uint32_t sequence_index = 0;  ///< 28 bits
    lock_list elements{};              ///< at least one

    [[nodiscard]] friend bool operator==(const lock_args&, const lock_args&) noexcept = default;
};

/// LOCK response, [MS-SMB2] 2.2.27.
struct lock_reply {
    [[nodiscard]] friend bool operator==(const lock_reply&, const lock_reply&) noexcept = default;
};

/// Errors: `truncated`, `bad_structure_size`, `missing` (no element), `range_outside_message`
/// (fewer than announced). Allocates: nothing. The server additionally limits the number of
/// elements.
[[nodiscard]] decoded<lock_args> decode_lock(const message_view& message) noexcept;
[[nodiscard]] decoded<lock_reply> decode_lock_reply(const message_view& message) noexcept;

void encode(byte_writer& writer, const lock_args& args) noexcept;
void encode(byte_writer& writer, const lock_reply& reply) noexcept;

}  // namespace sluice::smb::wire
