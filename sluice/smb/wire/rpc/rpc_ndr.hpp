#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"

// NDR 2.0, the transfer syntax of DCE/RPC (C706 chapter 14), limited to the needs of the calls
// here. Numbers are little-endian and aligned to their size from the beginning of the call's data.

namespace sluice::smb::wire {

/// A writer of a call's data. Allocates. It discards data beyond `bytes_max` and records the
/// overflow.
class ndr_writer {
public:
    explicit ndr_writer(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}

    void u32(std::uint32_t value);
    void u16(std::uint16_t value);
    /// Writes a unique pointer. Its referent follows later, if present.
    void pointer(bool present);
    /// Writes the referent of a pointer to a string: conformant and varying, with a terminator.
    /// Text that is not UTF-8 becomes an empty string, because the call's other results are still
    /// useful.
    void text(std::string_view utf8);

    /// Writes the referent of a pointer to bytes: a conformant array.
    void byte_array(bytes_view bytes);

    [[nodiscard]] bool overflowed() const noexcept { return overflowed_; }
    [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }

private:
    void align(std::size_t alignment);
    void append(bytes_view more);

    std::vector<std::byte> bytes_;
    std::size_t bytes_max_;
    std::uint32_t referent_ = 0x00020000;
    bool overflowed_ = false;
};

/// A parser of a call's data, which outlives it. Every step returns std::nullopt if the data
/// violate a rule.
class ndr_reader {
public:
    explicit ndr_reader(bytes_view bytes) noexcept : reader_(bytes) {}

    [[nodiscard]] std::optional<std::uint32_t> u32() noexcept;
    /// Returns whether a unique pointer has a referent.
    [[nodiscard]] std::optional<bool> pointer() noexcept;
    /// Returns a conformant, varying string, without its terminator. Allocates: the string.
    [[nodiscard]] std::optional<std::string> text() noexcept;
    /// Returns a conformant array of bytes.
    [[nodiscard]] std::optional<bytes_view> byte_array() noexcept;
    /// Returns the string that a pointer refers to; an empty string for a null pointer.
    [[nodiscard]] std::optional<std::string> pointed_text() noexcept;
    [[nodiscard]] std::size_t remaining() const noexcept { return reader_.remaining(); }

private:
    byte_reader reader_;
};

}  // namespace sluice::smb::wire
