#include "sluice/smb/server/metadata/default_security.hpp"

#include "sluice/smb/server/metadata/user_sids.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::ace;
using wire::ace_flags;
using wire::descriptor_control;
using wire::security_descriptor;
using wire::security_information;

namespace {

constexpr descriptor_control about_dacl =
    descriptor_control::dacl_present | descriptor_control::dacl_defaulted |
    descriptor_control::dacl_auto_inherited | descriptor_control::dacl_protected;
constexpr descriptor_control about_sacl =
    descriptor_control::sacl_present | descriptor_control::sacl_defaulted |
    descriptor_control::sacl_auto_inherited | descriptor_control::sacl_protected;

// Entries for the file itself are stored with mapped rights; entries that are only inherited stay
// general.
[[nodiscard]] std::optional<wire::acl> with_rights_mapped(std::optional<wire::acl> list) {
    if (not list) return list;
    for (ace& entry : list->entries) {
        if (entry.understood() and not wire::has(entry.flags, ace_flags::inherit_only))
            entry.rights = wire::mapped_for_files(entry.rights);
    }
    return list;
}

}  // namespace

security_descriptor default_security(const vfs::metadata& file, const user_identity& user,
                                     const std::optional<vfs::acting_user>& acts_as) {
    const bool is_ours = not acts_as or acts_as->id == file.user_id;
    const bool is_users = is_ours and is_known(user);
    security_descriptor made =
        wire::descriptor_of({.owner = is_users ? sid_of(user) : wire::sid_of_unix_user(file.user_id),
                             .group = wire::sid_of_unix_group(file.group_id),
                             .mode = file.permission_bits,
                             .directory = file.kind == vfs::node_kind::directory});
    if (is_users) made.dacl->entries.front().rights = wire::file_all_access;
    return made;
}

security_descriptor selected(const security_descriptor& from, security_information parts) {
    security_descriptor part{.control = descriptor_control::self_relative};
    if (wire::has(parts, security_information::owner)) {
        part.owner = from.owner;
        part.control |= from.control & descriptor_control::owner_defaulted;
    }
    if (wire::has(parts, security_information::group)) {
        part.group = from.group;
        part.control |= from.control & descriptor_control::group_defaulted;
    }
    if (wire::has(parts, security_information::dacl)) {
        part.dacl = from.dacl;
        part.control |= from.control & about_dacl;
    }
    if (wire::has(parts, security_information::sacl)) {
        part.sacl = from.sacl;
        part.control |= from.control & about_sacl;
    }
    return part;
}

security_descriptor merged(const security_descriptor& stored, const security_descriptor& given,
                           security_information parts) {
    security_descriptor whole = stored;
    if (wire::has(parts, security_information::owner) and given.owner) whole.owner = given.owner;
    if (wire::has(parts, security_information::group) and given.group) whole.group = given.group;
    descriptor_control taken = given.control;
    if (not wire::has(taken, descriptor_control::dacl_auto_inherit_required))
        taken = without(taken, descriptor_control::dacl_auto_inherited);
    if (not wire::has(taken, descriptor_control::sacl_auto_inherit_required))
        taken = without(taken, descriptor_control::sacl_auto_inherited);
    if (wire::has(parts, security_information::dacl)) {
        whole.dacl = with_rights_mapped(given.dacl);
        // To set no list is to set the null list.
        whole.control =
            without(whole.control, about_dacl) | (taken & about_dacl) | descriptor_control::dacl_present;
    }
    if (wire::has(parts, security_information::sacl)) {
        whole.sacl = given.sacl;
        whole.control = without(whole.control, about_sacl) | (taken & about_sacl);
    }
    return whole;
}

}  // namespace sluice::smb::server
