#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/decode_error.hpp"

namespace sluice::smb::wire {

/// A security identifier, [MS-DTYP] 2.4.2: an authority of 48 bits and up to 15 subauthorities. It
/// is always well-formed and unused subauthorities are zero, so equality is that of the members.
/// Thread safety: a value.
class sid {
public:
    static constexpr std::size_t sub_authorities_max = 15;
    static constexpr std::uint64_t authority_max = (1ULL << 48) - 1;

    /// Constructs S-1-0-0, the null SID.
    constexpr sid() noexcept : sid(0, {0}) {}
    /// Constructs a SID. The authority is at most authority_max. There are at most
    /// sub_authorities_max subauthorities.
    constexpr sid(std::uint64_t authority, std::initializer_list<std::uint32_t> sub_authorities) noexcept
        : sid(authority, std::span(sub_authorities.begin(), sub_authorities.size())) {}
    constexpr sid(std::uint64_t authority, std::span<const std::uint32_t> sub_authorities) noexcept
        : authority_(authority), count_(static_cast<std::uint8_t>(sub_authorities.size())) {
        ENSURE(authority <= authority_max and sub_authorities.size() <= sub_authorities_max);
        std::size_t i = 0;
        for (const std::uint32_t number : sub_authorities)
            numbers_[i++] = number;
    }

    [[nodiscard]] constexpr std::uint64_t authority() const noexcept { return authority_; }
    [[nodiscard]] constexpr std::span<const std::uint32_t> sub_authorities() const noexcept {
        return {numbers_.data(), count_};
    }
    /// Returns its length on the wire.
    [[nodiscard]] constexpr std::size_t encoded_bytes() const noexcept { return 8 + std::size_t{count_} * 4; }

    [[nodiscard]] friend constexpr bool operator==(const sid&, const sid&) noexcept = default;

private:
    std::uint64_t authority_;
    std::array<std::uint32_t, sub_authorities_max> numbers_{};
    std::uint8_t count_;
};

void encode(byte_writer& writer, const sid& who) noexcept;
/// Consumes a SID at the front of the unread bytes; on an error, nothing. Errors: `truncated`,
/// `bad_value` for an unknown revision, `too_many` subauthorities.
[[nodiscard]] decoded<sid> take_sid(byte_reader& reader) noexcept;

/// Returns the text, as in "S-1-5-21-1-2-3-500", [MS-DTYP] 2.4.2.1. Allocates: the string.
[[nodiscard]] std::string text_of(const sid& who);
/// Parses such a text. Returns std::nullopt if it is not a SID. An authority is decimal or, with
/// the prefix "0x", hexadecimal.
[[nodiscard]] std::optional<sid> sid_of(std::string_view text) noexcept;

/// Return the identities of the host: S-1-22-1-uid and S-1-22-2-gid, the form that clients of Samba
/// know.
[[nodiscard]] constexpr sid sid_of_unix_user(std::uint32_t uid) noexcept {
    return {22, {1, uid}};
}
[[nodiscard]] constexpr sid sid_of_unix_group(std::uint32_t gid) noexcept {
    return {22, {2, gid}};
}

// Well-known ones, [MS-DTYP] 2.4.2.4.
inline constexpr sid sid_everyone{1, {0}};
inline constexpr sid sid_creator_owner{3, {0}};
inline constexpr sid sid_creator_group{3, {1}};
/// Represents the owner, in place of its implicit rights.
inline constexpr sid sid_owner_rights{3, {4}};
inline constexpr sid sid_network{5, {2}};
inline constexpr sid sid_anonymous{5, {7}};
inline constexpr sid sid_authenticated_users{5, {11}};
inline constexpr sid sid_local_system{5, {18}};
inline constexpr sid sid_administrators{5, {32, 544}};
inline constexpr sid sid_users{5, {32, 545}};
inline constexpr sid sid_guests{5, {32, 546}};

}  // namespace sluice::smb::wire
