#include "sluice/smb/wire/security/inheritance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "sluice/smb/wire/fscc/fscc_testing.hpp"

// The security descriptor of a new object ([MS-DTYP] 2.5.3.4).

namespace sluice::smb::wire {
namespace {

using testing::field_source;

constexpr sid owner = sid_of_unix_user(7);
constexpr sid group = sid_of_unix_group(8);
constexpr sid other = sid_of_unix_user(9);
constexpr ace_flags to_files = ace_flags::object_inherit;
constexpr ace_flags to_directories = ace_flags::container_inherit;

[[nodiscard]] object_creator creator_of(const sid& who) {
    object_creator made{.owner = who, .group = group};
    made.default_dacl.entries = {{.rights = file_all_access, .who = who},
                                 {.rights = file_all_access, .who = sid_local_system}};
    return made;
}
const object_creator creator = creator_of(owner);

[[nodiscard]] ace read_by(const sid& who, ace_flags flags) {
    return {.flags = flags, .rights = access_mask::read_data, .who = who};
}
[[nodiscard]] security_descriptor with_dacl(std::vector<ace> entries,
                                            descriptor_control control = descriptor_control::none) {
    return {.control = control | descriptor_control::dacl_present,
            .dacl = acl{.entries = std::move(entries)}};
}
[[nodiscard]] security_descriptor with_sacl(std::vector<ace> entries,
                                            descriptor_control control = descriptor_control::none) {
    for (ace& entry : entries)
        entry.type = ace_type::audit;
    return {.control = control | descriptor_control::sacl_present,
            .sacl = acl{.entries = std::move(entries)}};
}

[[nodiscard]] security_descriptor new_file(const security_descriptor& parent) {
    return descriptor_of_new({.parent = &parent}, creator);
}
[[nodiscard]] security_descriptor new_directory(const security_descriptor& parent) {
    return descriptor_of_new({.parent = &parent, .is_container = true}, creator);
}
[[nodiscard]] security_descriptor new_file(const security_descriptor& parent,
                                           const security_descriptor& given) {
    return descriptor_of_new({.parent = &parent, .given = &given}, creator);
}
[[nodiscard]] security_descriptor new_directory(const security_descriptor& parent,
                                                const security_descriptor& given) {
    return descriptor_of_new({.parent = &parent, .given = &given, .is_container = true}, creator);
}

// --- the owner and the group
// ------------------------------------------------------------------------------------

TEST(descriptor_of_new, has_the_owner_and_the_group_of_the_creator_unless_others_are_given) {
    const security_descriptor parent = with_dacl({read_by(other, to_files)});
    EXPECT_EQ(new_file(parent).owner, owner);
    EXPECT_EQ(new_file(parent).group, group);
    const security_descriptor given{.owner = other, .group = sid_everyone};
    EXPECT_EQ(new_file(parent, given).owner, other);
    EXPECT_EQ(new_file(parent, given).group, sid_everyone);
    EXPECT_EQ(new_file(parent, given).dacl, new_file(parent).dacl) << "which is inherited";
}

// --- what is inherited
// ------------------------------------------------------------------------------------------

struct inheritance_row {
    ace_flags of_parent;
    std::optional<ace_flags> of_directory;  // none: it does not inherit the entry
    std::optional<ace_flags> of_file;
};

TEST(descriptor_of_new, inherits_entries_as_the_table_of_the_specification_says) {
    constexpr ace_flags none = ace_flags::none;
    constexpr ace_flags all = to_files | to_directories;
    constexpr ace_flags stops = ace_flags::no_propagate;
    constexpr std::array rows{
        inheritance_row{none, std::nullopt, std::nullopt},
        inheritance_row{to_files, to_files | ace_flags::inherit_only, none},
        inheritance_row{to_files | stops, std::nullopt, none},
        inheritance_row{to_directories, to_directories, std::nullopt},
        inheritance_row{to_directories | stops, none, std::nullopt},
        inheritance_row{all, all, none},
        inheritance_row{all | stops, none, none},
    };
    for (const inheritance_row& row : rows) {
        for (const ace_flags scope : {none, ace_flags::inherit_only}) {
            const security_descriptor parent = with_dacl({read_by(other, row.of_parent | scope)});
            const auto entries_with = [&](std::optional<ace_flags> flags) {
                if (not flags) return creator.default_dacl.entries;
                return std::vector{read_by(other, *flags)};
            };
            EXPECT_EQ(new_directory(parent).dacl->entries, entries_with(row.of_directory))
                << int(bits_of(row.of_parent | scope));
            EXPECT_EQ(new_file(parent).dacl->entries, entries_with(row.of_file))
                << int(bits_of(row.of_parent | scope));
        }
    }
}

TEST(descriptor_of_new, stores_an_entry_twice_if_it_is_in_force_and_passes_on_the_creator) {
    const security_descriptor made = new_directory(with_dacl({read_by(sid_creator_owner, to_directories)}));
    const std::vector wanted{
        read_by(owner, ace_flags::none),
        read_by(sid_creator_owner, to_directories | ace_flags::inherit_only),
    };
    EXPECT_EQ(made.dacl->entries, wanted);
    EXPECT_EQ(new_file(with_dacl({read_by(sid_creator_group, to_files)})).dacl->entries,
              std::vector{read_by(group, ace_flags::none)});
}

TEST(descriptor_of_new, stores_an_entry_twice_if_it_is_in_force_and_passes_on_a_generic_right) {
    ace general = read_by(other, to_directories);
    general.rights = access_mask::generic_read;
    const security_descriptor made = new_directory(with_dacl({general}));
    ASSERT_EQ(made.dacl->entries.size(), 2u);
    EXPECT_EQ(made.dacl->entries[0].rights, file_generic_read);
    EXPECT_EQ(made.dacl->entries[0].flags, ace_flags::none);
    EXPECT_EQ(made.dacl->entries[1].rights, access_mask::generic_read);
    EXPECT_EQ(made.dacl->entries[1].flags, to_directories | ace_flags::inherit_only);
}

TEST(descriptor_of_new, is_full_control_for_the_creator_where_nothing_is_inherited) {
    EXPECT_EQ(new_file(with_dacl({read_by(other, to_directories)})).dacl, creator.default_dacl);
    EXPECT_EQ(descriptor_of_new({}, creator).dacl, creator.default_dacl);
    const security_descriptor null_list{.control = descriptor_control::dacl_present};
    EXPECT_EQ(new_file(null_list).dacl, creator.default_dacl);
}

TEST(descriptor_of_new, marks_entries_as_inherited_if_the_list_of_the_parent_is_automatic) {
    const std::vector entries{read_by(other, to_files | to_directories | ace_flags::inherited)};
    const security_descriptor made =
        new_directory(with_dacl(entries, descriptor_control::dacl_auto_inherited));
    EXPECT_TRUE(has(made.control, descriptor_control::dacl_auto_inherited));
    EXPECT_EQ(made.dacl->entries[0].flags, to_files | to_directories | ace_flags::inherited);
    const security_descriptor plain = new_directory(with_dacl(entries));
    EXPECT_FALSE(has(plain.control, descriptor_control::dacl_auto_inherited));
    EXPECT_EQ(plain.dacl->entries[0].flags, to_files | to_directories);
}

TEST(descriptor_of_new, inherits_entries_of_unknown_kinds_unchanged_and_none_for_object_types) {
    ace unknown{.type = ace_type(17), .flags = to_files, .rest = std::vector<std::byte>(16)};
    ace of_objects = unknown;
    of_objects.type = ace_type(5);
    const security_descriptor made = new_file(with_dacl({of_objects, unknown}));
    unknown.flags = ace_flags::none;
    EXPECT_EQ(made.dacl->entries, std::vector{unknown});
}

TEST(descriptor_of_new, inherits_the_sacl_by_the_same_rules_and_has_none_by_default) {
    const security_descriptor parent =
        with_sacl({read_by(sid_creator_owner, to_directories | ace_flags::failed_access)},
                  descriptor_control::sacl_auto_inherited);
    const security_descriptor made = new_directory(parent);
    ASSERT_TRUE(made.sacl);
    ASSERT_EQ(made.sacl->entries.size(), 2u);
    EXPECT_EQ(made.sacl->entries[0].who, owner);
    EXPECT_EQ(made.sacl->entries[0].flags, ace_flags::failed_access | ace_flags::inherited);
    EXPECT_EQ(made.sacl->entries[1].flags,
              to_directories | ace_flags::inherit_only | ace_flags::failed_access | ace_flags::inherited);
    EXPECT_TRUE(
        has(made.control, descriptor_control::sacl_present | descriptor_control::sacl_auto_inherited));
    EXPECT_FALSE(has(made.control, descriptor_control::dacl_auto_inherited));
    EXPECT_EQ(made.dacl, creator.default_dacl);
    EXPECT_FALSE(new_file(parent).sacl);
    EXPECT_FALSE(has(new_file(parent).control, descriptor_control::sacl_present));
}

// --- a given list
// -----------------------------------------------------------------------------------------------

TEST(descriptor_of_new, takes_a_given_list_alone_unless_the_list_of_the_parent_is_automatic) {
    const std::vector inheritable{read_by(other, to_files)};
    const security_descriptor given = with_dacl({read_by(sid_everyone, ace_flags::none)});
    EXPECT_EQ(new_file(with_dacl(inheritable), given).dacl, given.dacl);
    const security_descriptor merged =
        new_file(with_dacl(inheritable, descriptor_control::dacl_auto_inherited), given);
    const std::vector wanted{read_by(sid_everyone, ace_flags::none), read_by(other, ace_flags::inherited)};
    EXPECT_EQ(merged.dacl->entries, wanted);
    EXPECT_TRUE(has(merged.control, descriptor_control::dacl_auto_inherited));
}

TEST(descriptor_of_new, inherits_nothing_into_a_protected_list) {
    const security_descriptor parent =
        with_dacl({read_by(other, to_files)}, descriptor_control::dacl_auto_inherited);
    const security_descriptor given =
        with_dacl({read_by(sid_everyone, ace_flags::inherited)},
                  descriptor_control::dacl_protected | descriptor_control::dacl_auto_inherited);
    const security_descriptor made = new_file(parent, given);
    EXPECT_EQ(made.dacl->entries, std::vector{read_by(sid_everyone, ace_flags::none)})
        << "the entry is its own now";
    EXPECT_TRUE(has(made.control, descriptor_control::dacl_protected));
    EXPECT_FALSE(has(made.control, descriptor_control::dacl_auto_inherited));
}

TEST(descriptor_of_new, drops_entries_that_a_given_list_has_inherited_from_elsewhere) {
    const security_descriptor given =
        with_dacl({read_by(sid_everyone, ace_flags::inherited), read_by(other, ace_flags::none)});
    EXPECT_EQ(new_file(with_dacl({}), given).dacl->entries, std::vector{read_by(other, ace_flags::none)});
}

TEST(descriptor_of_new, keeps_a_given_null_list_and_a_given_empty_list) {
    const security_descriptor parent =
        with_dacl({read_by(other, to_files)}, descriptor_control::dacl_auto_inherited);
    const security_descriptor null_list{.control = descriptor_control::dacl_present};
    EXPECT_FALSE(new_file(parent, null_list).dacl);
    EXPECT_TRUE(has(new_file(parent, null_list).control, descriptor_control::dacl_present));
    EXPECT_EQ(new_file(with_dacl({}), with_dacl({})).dacl, acl{});
}

TEST(descriptor_of_new, uses_a_default_list_only_if_nothing_is_inherited) {
    const security_descriptor given =
        with_dacl({read_by(sid_everyone, ace_flags::none)}, descriptor_control::dacl_defaulted);
    EXPECT_EQ(new_file(with_dacl({read_by(other, to_files)}), given).dacl->entries,
              std::vector{read_by(other, ace_flags::none)});
    EXPECT_EQ(new_file(with_dacl({}), given).dacl, given.dacl);
}

TEST(descriptor_of_new, makes_given_entries_concrete_and_keeps_general_ones_for_descendants) {
    ace general{.flags = to_directories, .rights = access_mask::generic_all, .who = sid_creator_owner};
    const security_descriptor given = with_dacl({general});
    const security_descriptor file = new_file(with_dacl({}), given);
    EXPECT_EQ(file.dacl->entries,
              (std::vector{ace{.flags = to_directories, .rights = file_all_access, .who = owner}}));
    const security_descriptor directory = new_directory(with_dacl({}), given);
    ASSERT_EQ(directory.dacl->entries.size(), 2u);
    EXPECT_EQ(directory.dacl->entries[0], (ace{.rights = file_all_access, .who = owner}));
    general.flags |= ace_flags::inherit_only;
    EXPECT_EQ(directory.dacl->entries[1], general);
    EXPECT_EQ(new_directory(with_dacl({}), with_dacl({general})).dacl->entries, std::vector{general});
}

TEST(descriptor_of_new, keeps_an_order_of_entries_that_is_not_canonical) {
    ace denial = read_by(other, ace_flags::none);
    denial.type = ace_type::deny;
    const security_descriptor given = with_dacl({read_by(sid_everyone, ace_flags::none), denial});
    EXPECT_EQ(new_file(with_dacl({}), given).dacl, given.dacl);
}

// --- against a reference
// ----------------------------------------------------------------------------------------

// A reference in which an entry is never split: a directory has the entries of an ancestor that
// concern its descendants, each with the flags that the table of [MS-DTYP] 2.5.3.4.4 leaves of it.
struct reference_directory {
    std::vector<ace> in_force;
    std::vector<ace> for_descendants;
};

[[nodiscard]] ace as_in_force(ace entry, const object_creator& by) {
    entry.flags = ace_flags::none;
    if (entry.who == sid_creator_owner) entry.who = by.owner;
    if (entry.who == sid_creator_group) entry.who = by.group;
    entry.rights = mapped_for_files(entry.rights);
    return entry;
}

[[nodiscard]] reference_directory reference_child(const std::vector<ace>& of_parent, bool is_container,
                                                  const object_creator& by) {
    reference_directory child;
    for (const ace& entry : of_parent) {
        const bool files = has(entry.flags, to_files);
        const bool directories = has(entry.flags, to_directories);
        if (is_container ? directories : files) child.in_force.push_back(as_in_force(entry, by));
        if (not is_container or has(entry.flags, ace_flags::no_propagate) or not(files or directories))
            continue;
        child.for_descendants.push_back(entry);
    }
    if (child.in_force.empty() and child.for_descendants.empty()) child.in_force = by.default_dacl.entries;
    return child;
}

[[nodiscard]] std::vector<ace> in_force_in(const security_descriptor& made) {
    std::vector<ace> found;
    for (ace entry : made.dacl->entries) {
        if (has(entry.flags, ace_flags::inherit_only)) continue;
        entry.flags = ace_flags::none;
        found.push_back(entry);
    }
    return found;
}

[[nodiscard]] std::vector<ace> random_entries(field_source& from) {
    constexpr std::array who{sid_creator_owner, sid_creator_group, sid_everyone, other, owner};
    constexpr std::array types{ace_type::allow, ace_type::deny, ace_type::allow_callback};
    std::vector<ace> entries(from.below(6));
    for (ace& entry : entries)
        entry = {.type = types[from.below(types.size())],
                 .flags = ace_flags(from.below(32)),
                 .rights = access_mask(from.u32() & (from.yes() ? 0xf0'1f'01'ffU : 0x00'1f'01'ffU)),
                 .who = who[from.below(who.size())]};
    return entries;
}

TEST(descriptor_of_new, agrees_with_a_simple_reference_over_several_generations) {
    field_source from(5);
    for (int round = 0; round < 2000; ++round) {
        const bool is_automatic = from.yes();
        security_descriptor parent =
            with_dacl(random_entries(from),
                      is_automatic ? descriptor_control::dacl_auto_inherited : descriptor_control::none);
        std::vector<ace> heritage = parent.dacl->entries;
        for (std::uint32_t generation = 0; generation != 4; ++generation) {
            const object_creator by = creator_of(sid_of_unix_user(100 + generation));
            const security_descriptor file = descriptor_of_new({.parent = &parent}, by);
            ASSERT_EQ(in_force_in(file), reference_child(heritage, false, by).in_force)
                << "round " << round << ", generation " << generation;
            const security_descriptor made = descriptor_of_new({.parent = &parent, .is_container = true}, by);
            const reference_directory wanted = reference_child(heritage, true, by);
            ASSERT_EQ(in_force_in(made), wanted.in_force)
                << "round " << round << ", generation " << generation;
            const bool marks = has(made.control, descriptor_control::dacl_auto_inherited);
            for (const ace& entry : made.dacl->entries)
                ASSERT_EQ(has(entry.flags, ace_flags::inherited), marks);
            ASSERT_LE(made.dacl->entries.size(), std::max<std::size_t>(2, 2 * heritage.size()))
                << "no generation has more entries than the first two";
            parent = made;
            heritage = wanted.for_descendants;
        }
    }
}

TEST(descriptor_of_new, agrees_with_a_simple_reference_about_given_lists) {
    field_source from(6);
    for (int round = 0; round < 2000; ++round) {
        const bool is_automatic = from.yes();
        const bool is_protected = from.yes();
        const bool is_container = from.yes();
        const security_descriptor parent =
            with_dacl(random_entries(from),
                      is_automatic ? descriptor_control::dacl_auto_inherited : descriptor_control::none);
        const security_descriptor given =
            with_dacl(random_entries(from),
                      is_protected ? descriptor_control::dacl_protected : descriptor_control::none);
        std::vector<ace> wanted;
        for (const ace& entry : given.dacl->entries)
            if (not has(entry.flags, ace_flags::inherit_only) and
                (is_protected or not has(entry.flags, ace_flags::inherited)))
                wanted.push_back(as_in_force(entry, creator));
        if (is_automatic and not is_protected) {
            object_creator without_default = creator;
            without_default.default_dacl = {};
            const auto inherited = reference_child(parent.dacl->entries, is_container, without_default);
            wanted.insert(wanted.end(), inherited.in_force.begin(), inherited.in_force.end());
        }
        const security_descriptor made =
            descriptor_of_new({.parent = &parent, .given = &given, .is_container = is_container}, creator);
        ASSERT_EQ(in_force_in(made), wanted) << "round " << round;
    }
}

}  // namespace
}  // namespace sluice::smb::wire
