#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"

// NDR 2.0, the transfer syntax of DCE/RPC (C706 chapter 14), as far as the calls here need it. Little-endian;
// every number aligned to its size from the beginning of the call's data.

namespace sluice::smb::wire {

/// Grows a call's data. Allocates. What would go beyond `bytes_max` is left out, and the writer remembers.
class ndr_writer {
public:
    explicit ndr_writer(std::size_t bytes_max) noexcept : bytes_max_(bytes_max) {}

    void u32(std::uint32_t value);
    void u16(std::uint16_t value);
    /// A unique pointer: its referent follows later, if there is one.
    void pointer(bool present);
    /// The referent of a pointer to a string: conformant and varying, with a terminator. Text that is not
    /// UTF-8 becomes an empty string, since the call's other results are still of use.
    void text(std::string_view utf8);

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

/// Takes a call's data apart; the bytes outlive it. Every step gives nothing if the data break a rule.
class ndr_reader {
public:
    explicit ndr_reader(bytes_view bytes) noexcept : reader_(bytes) {}

    [[nodiscard]] std::optional<std::uint32_t> u32() noexcept;
    /// Whether a unique pointer has a referent.
    [[nodiscard]] std::optional<bool> pointer() noexcept;
    /// A conformant, varying string, without its terminator. Allocates: the string.
    [[nodiscard]] std::optional<std::string> text() noexcept;
    /// A pointer and, if it is not null, the string behind it.
    [[nodiscard]] std::optional<std::string> pointed_text() noexcept;
    [[nodiscard]] std::size_t remaining() const noexcept { return reader_.remaining(); }

private:
    byte_reader reader_;
};

}  // namespace sluice::smb::wire
