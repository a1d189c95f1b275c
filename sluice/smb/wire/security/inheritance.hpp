#pragma once

#include "sluice/smb/wire/security/security_descriptor.hpp"

namespace sluice::smb::wire {

/// The parts that a new object gets from the token of its creator, unless a descriptor says
/// otherwise.
struct object_creator {
    sid owner{};  ///< also in place of "creator owner"
    sid group{};
    acl default_dacl{};  ///< if there is neither a list of the creator nor anything to inherit
};

/// A file or directory that is created.
struct new_object {
    const security_descriptor* parent = nullptr;  ///< that of its directory; null: no descriptor
    const security_descriptor* given = nullptr;   ///< by the creator; null: none
    bool is_container = false;
};

/// Returns the descriptor of a new file or directory, [MS-DTYP] 2.5.3.4, as Windows computes it
/// where the text of the specification and its pseudocode differ
/// (docs/decisions/0023-acl-inheritance.md).
///
/// Invariants, for the DACL and the SACL alike:
///   1. A given list takes precedence. A given null list stays null. A list that is marked as a
///      default is used only if nothing is inherited.
///   2. Inherited entries follow those of a given list only if the parent's list is marked as
///      inherited automatically, and the given list is not protected. Only then they are marked as
///      inherited.
///   3. Entries that the creator's list has inherited from elsewhere are dropped, or, if it is
///      protected, become its own.
///   4. An entry that is in force names no "creator" and no generic right. If descendants inherit
///      it as well, it is stored twice: once in force, and once as it was, to be inherited only.
///   5. An entry for types of objects is not inherited: files have no such type.
///   6. The entries of each source keep their order.
///
/// Allocates: the lists. Complexity: O(entries).
[[nodiscard]] security_descriptor descriptor_of_new(const new_object& object, const object_creator& creator);

}  // namespace sluice::smb::wire
