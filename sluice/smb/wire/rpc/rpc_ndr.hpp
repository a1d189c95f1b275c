#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/base/endian.hpp"
#include "sluice/smb/wire/security/sid.hpp"

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
    /// Pads with zeros, as before a union with wider arms. `alignment` is a power of two.
    void align(std::size_t alignment);
    /// Writes bytes without alignment or length, as of a context handle.
    void raw(bytes_view bytes) { append(bytes); }
    /// Writes a unique pointer. Its referent follows later, if present.
    void pointer(bool present);
    /// Writes the referent of a pointer to a string: conformant and varying, with a terminator.
    /// Text that is not UTF-8 becomes an empty string, because the call's other results are still
    /// useful.
    void text(std::string_view utf8);

    /// Writes the referent of a pointer to bytes: a conformant array.
    void byte_array(bytes_view bytes);

    /// Writes the fixed part of an RPC_UNICODE_STRING ([MS-DTYP] 2.3.10), and its referent: the
    /// text without a terminator. An empty text has no referent. Text that cannot be encoded counts
    /// as empty.
    void counted_text_head(std::string_view utf8);
    void counted_text(std::string_view utf8);
    /// Writes the referent of a pointer to an RPC_SID ([MS-DTYP] 2.4.2.3).
    void sid_referent(const sid& who);

    [[nodiscard]] bool overflowed() const noexcept { return overflowed_; }
    [[nodiscard]] bytes_view bytes() const noexcept { return bytes_; }

private:
    void append(bytes_view more);

    std::vector<std::byte> bytes_;
    std::size_t bytes_max_;
    std::uint32_t referent_ = 0x00020000;
    bool overflowed_ = false;
};

/// The limits of one call's data.
struct ndr_limits {
    std::size_t depth_max = 4;        ///< arrays, strings and SIDs inside of each other
    std::size_t elements_max = 1000;  ///< in one array
};

/// The fixed part of an RPC_UNICODE_STRING.
struct ndr_counted_text {
    std::uint16_t bytes = 0;
    bool is_present = false;
};

/// A parser of a call's data, which outlives it. Every step returns std::nullopt if the data
/// violate a rule or a limit.
class ndr_reader {
public:
    explicit ndr_reader(bytes_view bytes, ndr_limits limits = {}) noexcept
        : reader_(bytes), limits_(limits) {}

    [[nodiscard]] std::optional<std::uint32_t> u32() noexcept;
    [[nodiscard]] std::optional<std::uint16_t> u16() noexcept;
    /// Returns whether a unique pointer has a referent.
    [[nodiscard]] std::optional<bool> pointer() noexcept;
    /// Returns a conformant, varying string, without its terminator. Allocates: the string.
    [[nodiscard]] std::optional<std::string> text() noexcept;
    /// Returns a conformant array of bytes.
    [[nodiscard]] std::optional<bytes_view> byte_array() noexcept;
    /// Returns the string that a pointer refers to; an empty string for a null pointer.
    [[nodiscard]] std::optional<std::string> pointed_text() noexcept;
    /// Returns bytes without alignment or length.
    [[nodiscard]] std::optional<bytes_view> raw(std::size_t length) noexcept;

    [[nodiscard]] std::optional<ndr_counted_text> counted_text_head() noexcept;
    /// Returns the referent of such a text; an empty string if there is none. Allocates: the
    /// string.
    [[nodiscard]] std::optional<std::string> counted_text(const ndr_counted_text& head) noexcept;
    /// Returns the referent of a pointer to an RPC_SID.
    [[nodiscard]] std::optional<sid> sid_referent() noexcept;
    /// Consumes the number of elements before an array, which its caller expects. Returns
    /// std::nullopt if they differ, or there are more than elements_max.
    [[nodiscard]] std::optional<std::uint32_t> array_count(std::uint32_t expected) noexcept;

    [[nodiscard]] std::size_t remaining() const noexcept { return reader_.remaining(); }

private:
    friend class ndr_level;

    byte_reader reader_;
    ndr_limits limits_;
    std::size_t depth_ = 0;
};

/// While it exists, what is read is one level deeper: inside of an array, a string or a SID. False
/// if that is deeper than depth_max. The reader outlives it.
class [[nodiscard]] ndr_level {
public:
    explicit ndr_level(ndr_reader& of) noexcept : of_(of) { ++of_.depth_; }
    ndr_level(const ndr_level&) = delete;
    ndr_level& operator=(const ndr_level&) = delete;
    ~ndr_level() { --of_.depth_; }

    [[nodiscard]] explicit operator bool() const noexcept { return of_.depth_ <= of_.limits_.depth_max; }

private:
    ndr_reader& of_;
};

}  // namespace sluice::smb::wire
