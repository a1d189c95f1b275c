#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/wire/bit_flags.hpp"
#include "sluice/smb/wire/decode_error.hpp"
#include "sluice/smb/wire/security/acl.hpp"
#include "sluice/smb/wire/security/sid.hpp"

namespace sluice::smb::wire {

/// SECURITY_DESCRIPTOR_CONTROL, [MS-DTYP] 2.4.6.
enum class descriptor_control : std::uint16_t {
    none = 0,
    owner_defaulted = 0x0001,
    group_defaulted = 0x0002,
    dacl_present = 0x0004,
    dacl_defaulted = 0x0008,
    sacl_present = 0x0010,
    sacl_defaulted = 0x0020,
    dacl_auto_inherit_required = 0x0100,
    sacl_auto_inherit_required = 0x0200,
    dacl_auto_inherited = 0x0400,
    sacl_auto_inherited = 0x0800,
    dacl_protected = 0x1000,
    sacl_protected = 0x2000,
    self_relative = 0x8000,
};
template <>
inline constexpr bool is_bit_flags<descriptor_control> = true;

/// SECURITY_DESCRIPTOR, [MS-DTYP] 2.4.6: the owner of an object, and the rights to it. A list that
/// is marked present in `control` and has no value is a null list, which grants everything. An
/// empty list grants nothing.
struct security_descriptor {
    descriptor_control control = descriptor_control::self_relative;
    std::optional<sid> owner{};
    std::optional<sid> group{};
    std::optional<acl> sacl{};
    std::optional<acl> dacl{};

    [[nodiscard]] friend bool operator==(const security_descriptor&,
                                         const security_descriptor&) noexcept = default;
};

/// The longest self-relative form that is accepted and written. File systems store no more in an
/// attribute.
inline constexpr std::size_t security_descriptor_bytes_max = 65536;

/// Returns the length of the self-relative form. Complexity: O(entries).
[[nodiscard]] std::size_t encoded_bytes(const security_descriptor& descriptor) noexcept;

/// Writes the self-relative form at the writer's position, from which its offsets count: the owner,
/// the group, the DACL, then the SACL, which is the order of [MS-FSA] 2.1.5.14, as some clients
/// expect it. `control` is completed with the bits that the members imply. Errors: `too_long`;
/// those of acl.
[[nodiscard]] decoded<void> encode(byte_writer& writer, const security_descriptor& descriptor) noexcept;

/// Decodes parts in any order. Errors: `truncated`, `bad_value` for another revision, `unsupported`
/// for a form that is not self-relative, `too_long`, `range_outside_message` for an offset outside
/// or into the header, and those of the parts. Allocates: the lists.
[[nodiscard]] decoded<security_descriptor> decode_security_descriptor(bytes_view bytes) noexcept;

/// The ownership of a host file without its own descriptor.
struct unix_ownership {
    sid owner{};
    sid group{};
    std::uint32_t mode = 0;  ///< permission bits, as chmod takes them
    bool directory = false;
};

/// Returns the descriptor of a host file: one entry each for its owner, its group and everyone,
/// unless it has no rights. The owner can always read and change the descriptor and the attributes.
/// A right to read includes the right to execute, because a program runs on the client, where the
/// host's bit has no meaning. A right to write includes the right to delete. Rights accumulate:
/// where the host is stricter, for example if the mode gives the group less than others, the host
/// denies the operation later. Allocates: the list.
[[nodiscard]] security_descriptor descriptor_of(const unix_ownership& file) noexcept;

}  // namespace sluice::smb::wire
