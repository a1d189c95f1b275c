#include "sluice/smb/wire/security/inheritance.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::smb::wire {
namespace {

constexpr ace_flags to_descendants = ace_flags::object_inherit | ace_flags::container_inherit;
constexpr ace_flags about_inheritance = to_descendants | ace_flags::no_propagate | ace_flags::inherit_only;

// The bits of a descriptor's control that concern one of its lists.
struct list_bits {
    descriptor_control present;
    descriptor_control defaulted;
    descriptor_control auto_inherited;
    descriptor_control is_protected;
};
constexpr list_bits dacl_bits{.present = descriptor_control::dacl_present,
                              .defaulted = descriptor_control::dacl_defaulted,
                              .auto_inherited = descriptor_control::dacl_auto_inherited,
                              .is_protected = descriptor_control::dacl_protected};
constexpr list_bits sacl_bits{.present = descriptor_control::sacl_present,
                              .defaulted = descriptor_control::sacl_defaulted,
                              .auto_inherited = descriptor_control::sacl_auto_inherited,
                              .is_protected = descriptor_control::sacl_protected};

// One of the lists of a descriptor, and the control in which its bits are.
struct list_of {
    const std::optional<acl>* list = nullptr;  // null: there is no descriptor
    descriptor_control control = descriptor_control::none;

    [[nodiscard]] bool has_list() const noexcept { return list != nullptr and list->has_value(); }
    [[nodiscard]] bool is_set(descriptor_control bit) const noexcept {
        return list != nullptr and has(control, bit);
    }
};

[[nodiscard]] list_of dacl_of(const security_descriptor* from) noexcept {
    if (from == nullptr) return {};
    return {.list = &from->dacl, .control = from->control};
}
[[nodiscard]] list_of sacl_of(const security_descriptor* from) noexcept {
    if (from == nullptr) return {};
    return {.list = &from->sacl, .control = from->control};
}

// The kinds with a GUID for the type of the objects that inherit them.
[[nodiscard]] bool is_for_object_types(ace_type type) noexcept {
    switch (static_cast<std::uint8_t>(type)) {
        case 5:  // allow, deny, audit, alarm
        case 6:
        case 7:
        case 8:
        case 11:  // the same on a condition
        case 12:
        case 15:
        case 16:
            return true;
        default:
            return false;
    }
}

// The entries of one list of a new object.
class entries_of_new {
public:
    entries_of_new(const sid& owner, const sid& group, bool is_container) noexcept
        : owner_(owner), group_(group), is_container_(is_container) {}

    // Adds an entry of the parent as the new object inherits it.
    void inherit(const ace& from, bool is_automatic) {
        if (is_for_object_types(from.type)) return;
        const bool is_in_force =
            has(from.flags, is_container_ ? ace_flags::container_inherit : ace_flags::object_inherit);
        const bool passes_on = is_container_ and not has(from.flags, ace_flags::no_propagate) and
                               has_any(from.flags, to_descendants);
        const ace_flags mark = is_automatic ? ace_flags::inherited : ace_flags::none;
        const ace_flags other = without(from.flags, about_inheritance | ace_flags::inherited) | mark;
        const ace_flags passed_on = from.flags & to_descendants;
        const ace concrete = in_force(from);
        const bool is_general = concrete != from;
        if (is_in_force) put(concrete, other | (passes_on and not is_general ? passed_on : ace_flags::none));
        if (passes_on and (is_general or not is_in_force))
            put(from, other | passed_on | ace_flags::inherit_only);
    }

    // Adds an entry that the creator gives.
    void take(const ace& from, bool is_protected) {
        if (has(from.flags, ace_flags::inherited) and not is_protected) return;
        const ace_flags own = without(from.flags, ace_flags::inherited);
        if (has(own, ace_flags::inherit_only)) return put(from, own);
        const ace concrete = in_force(from);
        const bool is_stored_twice = is_container_ and has_any(own, to_descendants) and concrete != from;
        put(concrete, is_stored_twice ? without(own, about_inheritance) : own);
        if (is_stored_twice) put(from, own | ace_flags::inherit_only);
    }

    [[nodiscard]] bool is_empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] std::vector<ace> release() noexcept { return std::move(entries_); }

private:
    [[nodiscard]] ace in_force(ace entry) const noexcept {
        if (not entry.understood()) return entry;
        if (entry.who == sid_creator_owner)
            entry.who = owner_;
        else if (entry.who == sid_creator_group)
            entry.who = group_;
        entry.rights = mapped_for_files(entry.rights);
        return entry;
    }
    void put(ace entry, ace_flags flags) {
        entry.flags = flags;
        entries_.push_back(std::move(entry));
    }

    const sid& owner_;
    const sid& group_;
    bool is_container_;
    std::vector<ace> entries_;
};

struct computed_list {
    std::optional<acl> list{};
    descriptor_control control = descriptor_control::none;
};

[[nodiscard]] bool has_inheritable(const acl& list) noexcept {
    return std::ranges::any_of(list.entries,
                               [](const ace& entry) { return has_any(entry.flags, to_descendants); });
}

// ComputeACL, [MS-DTYP] 2.5.3.4.2, without a default.
class list_computation {
public:
    list_computation(const list_bits& bits, const list_of& parent, const list_of& given) noexcept
        : bits_(bits), parent_(parent), given_(given) {}

    [[nodiscard]] computed_list run(const entries_of_new& empty) const {
        entries_of_new inherited = empty;
        append_inherited(inherited);
        const bool is_given = given_.has_list() or given_.is_set(bits_.present);
        const bool yields = given_.is_set(bits_.defaulted) and not inherited.is_empty();
        if (is_given and not yields) return from_creator(empty);
        if (inherited.is_empty()) return {};
        return {.list = acl{.revision = (*parent_.list)->revision, .entries = inherited.release()},
                .control = bits_.present | (is_automatic() ? bits_.auto_inherited : no_bits)};
    }

private:
    static constexpr descriptor_control no_bits = descriptor_control::none;

    [[nodiscard]] bool is_automatic() const noexcept { return parent_.is_set(bits_.auto_inherited); }

    void append_inherited(entries_of_new& to) const {
        if (not parent_.has_list()) return;
        for (const ace& entry : (*parent_.list)->entries)
            to.inherit(entry, is_automatic());
    }

    [[nodiscard]] computed_list from_creator(entries_of_new entries) const {
        const bool is_protected = given_.is_set(bits_.is_protected);
        computed_list made{.control =
                               bits_.present | (given_.control & (bits_.defaulted | bits_.is_protected))};
        if (not given_.has_list()) return made;
        std::uint8_t revision = (*given_.list)->revision;
        for (const ace& entry : (*given_.list)->entries)
            entries.take(entry, is_protected);
        const bool merges =
            is_automatic() and not is_protected and parent_.has_list() and has_inheritable(**parent_.list);
        if (merges) {
            append_inherited(entries);
            revision = std::max(revision, (*parent_.list)->revision);
            made.control |= bits_.auto_inherited;
        }
        made.list = acl{.revision = revision, .entries = entries.release()};
        return made;
    }

    const list_bits& bits_;
    const list_of& parent_;
    const list_of& given_;
};

}  // namespace

security_descriptor descriptor_of_new(const new_object& object, const object_creator& creator) {
    security_descriptor made{
        .control = descriptor_control::self_relative, .owner = creator.owner, .group = creator.group};
    if (object.given != nullptr and object.given->owner) made.owner = object.given->owner;
    if (object.given != nullptr and object.given->group) made.group = object.given->group;
    const entries_of_new empty(*made.owner, *made.group, object.is_container);
    const list_of parent_dacl = dacl_of(object.parent);
    const list_of given_dacl = dacl_of(object.given);
    computed_list dacl = list_computation(dacl_bits, parent_dacl, given_dacl).run(empty);
    if (not has(dacl.control, dacl_bits.present))
        dacl = {.list = creator.default_dacl, .control = dacl_bits.present};
    const list_of parent_sacl = sacl_of(object.parent);
    const list_of given_sacl = sacl_of(object.given);
    computed_list sacl = list_computation(sacl_bits, parent_sacl, given_sacl).run(empty);
    made.dacl = std::move(dacl.list);
    made.sacl = std::move(sacl.list);
    made.control |= dacl.control | sacl.control;
    return made;
}

}  // namespace sluice::smb::wire
