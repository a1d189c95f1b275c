#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/security/access_mask.hpp"
#include "sluice/smb/wire/security/sid.hpp"

namespace sluice::smb::wire {

/// The kind of an entry, [MS-DTYP] 2.4.4.1. An entry of a "callback" kind holds on a condition.
/// Other kinds exist (with objects, labels). They are kept unchanged and never decide an access
/// check.
enum class ace_type : std::uint8_t {
    allow = 0,
    deny = 1,
    audit = 2,
    allow_callback = 9,
    deny_callback = 10,
    audit_callback = 13,
};

enum class ace_flags : std::uint8_t {
    none = 0,
    object_inherit = 0x01,     ///< files in the directory inherit it
    container_inherit = 0x02,  ///< directories in the directory inherit it
    no_propagate = 0x04,
    inherit_only = 0x08,  ///< does not apply to this directory itself
    inherited = 0x10,
    successful_access = 0x40,
    failed_access = 0x80,
};
template <>
inline constexpr bool is_bit_flags<ace_flags> = true;

/// An access control entry.
struct ace {
    ace_type type = ace_type::allow;
    ace_flags flags = ace_flags::none;
    access_mask rights = access_mask::none;  ///< only for the kinds named above, like `who`
    sid who{};
    std::vector<std::byte>
        rest{};  ///< of another kind: all bytes after the header; of those: the bytes after the SID

    /// Returns whether it is of a kind named above, that is, has rights and a SID.
    [[nodiscard]] bool understood() const noexcept {
        switch (type) {
            case ace_type::allow:
            case ace_type::deny:
            case ace_type::audit:
            case ace_type::allow_callback:
            case ace_type::deny_callback:
            case ace_type::audit_callback:
                return true;
        }
        return false;
    }
    /// Returns whether it takes rights away, perhaps on a condition.
    [[nodiscard]] bool denies() const noexcept {
        return type == ace_type::deny or type == ace_type::deny_callback;
    }
    [[nodiscard]] friend bool operator==(const ace&, const ace&) noexcept = default;
};

/// An access control list, [MS-DTYP] 2.4.5. The first entry that names a right decides it.
struct acl {
    std::uint8_t revision = 2;
    std::vector<ace> entries{};

    [[nodiscard]] friend bool operator==(const acl&, const acl&) noexcept = default;
};

/// Returns the length of the list on the wire. Complexity: O(entries).
[[nodiscard]] std::size_t encoded_bytes(const acl& list) noexcept;

/// Errors: `too_long` for an entry or a list beyond the 64 KiB that its length field can represent.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const acl& list) noexcept;
/// Decodes the list at the front. Errors: `truncated`, `bad_value` for a revision other than 2 and
/// 4, `bad_chain` if entries do not fit the list or their own length, `misaligned` for an entry
/// whose length is not a multiple of 4, and those of take_sid. Allocates: the entries, at most as
/// many as fit into the bytes.
[[nodiscard]] decoded<acl> decode_acl(bytes_view bytes) noexcept;

/// Returns whether the entries are in the order that editors expect: own denials, own permissions,
/// then inherited entries, nearest ancestor first. Complexity: O(entries).
[[nodiscard]] bool is_canonical(const acl& list) noexcept;
/// Sorts the entries in that order; the sort is stable. Allocates: a second list for the duration
/// of the call.
void make_canonical(acl& list);

}  // namespace sluice::smb::wire
