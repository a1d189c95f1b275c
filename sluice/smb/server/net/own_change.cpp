#include "sluice/smb/server/net/own_change.hpp"

#include <algorithm>

#include "sluice/vfs/node_children.hpp"

namespace sluice::smb::server {

own_change::~own_change() {
    if (is_in_progress_) fail();  // the server stops in between
    // Events of these names have waited for the end of the change.
    if (not places_.empty() and host_.directories.has_events())
        host_.functions().examine_directories_soon(host_);
}

void own_change::add(const vfs::file_key& directory, std::string_view name,
                     const std::optional<name_state>& now, bool writes) {
    const bool is_known = std::ranges::any_of(
        places_, [&](const place& each) { return each.directory == directory and each.name == name; });
    if (is_known or not host_.directories.has(directory)) return;
    host_.directories.begin_change(directory, name, now, writes);
    places_.push_back({.directory = directory, .name = std::string(name)});
}

void own_change::begin(vfs::node& changed, bool writes) noexcept {
    if (not host_.directories.has_any()) return;
    is_in_progress_ = true;
    const result<vfs::name_place> at = changed.names()->place();
    if (at) add(at->directory, at->name, name_state(at->identity), writes);
}

void own_change::begin_in(vfs::node& directory, std::string_view name) noexcept {
    if (not host_.directories.has_any()) return;
    is_in_progress_ = true;
    const vfs::file_key key = directory.key();
    vfs::node_children* const names = directory.children();
    if (names == nullptr or not host_.directories.has(key)) return;
    const result<vfs::name_identity> there = names->identity_of(name);
    std::optional<name_state> now;
    if (there)
        now.emplace(*there);
    else if (there.error().code() == ENOENT)
        now.emplace(std::nullopt);
    add(key, name, now, false);
}

void own_change::end(vfs::node* changed) noexcept {
    if (not is_in_progress_ and not host_.directories.has_any()) return;
    end_with(changed != nullptr ? changed->names()->place() : failure({ENOENT, "find the name"}), false);
}

void own_change::end_link(vfs::node& linked) noexcept {
    if (is_in_progress_) end_with(linked.names()->place(), true);
}

void own_change::end_with(const result<vfs::name_place>& now, bool has_all_names) noexcept {
    // Its new name; or its only one, if the directory was not cached before.
    if (now and not has_all_names) add(now->directory, now->name, std::nullopt, false);
    for (const place& each : places_) {
        const bool is_its_name = now and now->directory == each.directory and now->name == each.name;
        const bool is_there = is_its_name or (now and has_all_names);
        const bool is_gone = not is_there and (now or now.error().code() == ENOENT);
        std::optional<name_state> left;
        if (is_there) left.emplace(now->identity);
        if (is_gone) left.emplace(std::nullopt);
        host_.directories.end_change(each.directory, each.name, left);
    }
    is_in_progress_ = false;
}

void own_change::fail() noexcept {
    for (const place& each : places_)
        host_.directories.end_change(each.directory, each.name, std::nullopt);
    is_in_progress_ = false;
}

void own_change::break_leases(const open& by) noexcept {
    break_leases_except(&by);
}

void own_change::break_leases_except(const open* by) noexcept {
    ENSURE(not is_in_progress_, "leases are broken after the change");
    for (const place& each : places_)
        host_.functions().break_directory_soon(host_, each.directory, by);
}

}  // namespace sluice::smb::server
