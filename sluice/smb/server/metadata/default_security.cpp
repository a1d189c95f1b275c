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

constexpr ace_flags about_inheritance = ace_flags::object_inherit | ace_flags::container_inherit |
                                        ace_flags::no_propagate | ace_flags::inherit_only;

[[nodiscard]] wire::sid in_the_name_of(const file_creator& creator, const wire::sid& who) noexcept {
    if (who == wire::sid_creator_owner) return creator.owner;
    if (who == wire::sid_creator_group) return creator.group;
    return who;
}

// One entry of a directory as what is made in it gets it: none, one, or one that
// counts and one to hand on.
class inheriting {
public:
    inheriting(const file_creator& creator, bool makes_directory, bool is_automatic) noexcept
        : creator_(creator), makes_directory_(makes_directory), is_automatic_(is_automatic) {}

    void add(const ace& from) {
        const bool counts = wire::has(
            from.flags, makes_directory_ ? ace_flags::container_inherit : ace_flags::object_inherit);
        const bool goes_on =
            makes_directory_ and not wire::has(from.flags, ace_flags::no_propagate) and
            wire::has_any(from.flags, ace_flags::object_inherit | ace_flags::container_inherit);
        if (not counts and not goes_on) return;
        ace own = from;
        own.who = in_the_name_of(creator_, from.who);
        own.rights = wire::mapped_for_files(from.rights);
        // An entry that the mapping changes is stored twice: mapped for the file, and as it was for
        // descendants.
        const bool is_general = own.who != from.who or own.rights != from.rights;
        if (counts) put(own, goes_on and not is_general ? from.flags & handed_on : ace_flags::none);
        if (goes_on and (is_general or not counts))
            put(from, (from.flags & handed_on) | ace_flags::inherit_only);
    }

    [[nodiscard]] std::vector<ace> take() noexcept { return std::move(entries_); }

private:
    static constexpr ace_flags handed_on = ace_flags::object_inherit | ace_flags::container_inherit;

    void put(ace entry, ace_flags inheritance) {
        entry.flags = without(entry.flags, about_inheritance | ace_flags::inherited) | inheritance;
        if (is_automatic_) entry.flags |= ace_flags::inherited;
        entries_.push_back(std::move(entry));
    }

    const file_creator& creator_;
    bool makes_directory_;
    bool is_automatic_;
    std::vector<ace> entries_;
};

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

security_descriptor inherited_security(const security_descriptor& directory, const file_creator& creator,
                                       bool makes_directory) {
    const bool is_automatic = wire::has(directory.control, descriptor_control::dacl_auto_inherited);
    inheriting heir(creator, makes_directory, is_automatic);
    if (directory.dacl) {
        for (const ace& entry : directory.dacl->entries)
            heir.add(entry);
    }
    security_descriptor made{.control = descriptor_control::self_relative | descriptor_control::dacl_present,
                             .owner = creator.owner,
                             .group = creator.group,
                             .sacl = std::nullopt,
                             .dacl = wire::acl{}};
    made.dacl->entries = heir.take();
    if (not made.dacl->entries.empty()) {
        if (is_automatic) made.control |= descriptor_control::dacl_auto_inherited;
        return made;
    }
    for (const wire::sid& who : {creator.owner, wire::sid_local_system})
        made.dacl->entries.push_back({.rights = wire::file_all_access, .who = who});
    return made;
}

security_descriptor selected(const security_descriptor& from, security_information parts) {
    security_descriptor part{.control = descriptor_control::self_relative};
    if (wire::has(parts, security_information::owner)) part.owner = from.owner;
    if (wire::has(parts, security_information::group)) part.group = from.group;
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
