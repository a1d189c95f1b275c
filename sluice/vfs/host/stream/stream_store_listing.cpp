#include "sluice/vfs/host/stream/stream_store_listing.hpp"

#include <algorithm>
#include <cerrno>

#include "sluice/io/path/xattr.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

bool is_group(std::string_view name) noexcept {
    const auto is_digit = [](char c) { return (c >= '0' and c <= '9') or (c >= 'a' and c <= 'f'); };
    return name == lost_streams_name or (name.size() == 2 and std::ranges::all_of(name, is_digit));
}

// Returns std::nullopt for a name that no server creates in this group.
std::optional<listed_streams> parse(std::string_view group, const io::directory_entry& entry) {
    listed_streams found{.modified = entry.status.modified, .is_lost = group == lost_streams_name};
    found.is_being_removed = found.is_lost and entry.name.ends_with(removed_suffix);
    const std::size_t suffix = found.is_being_removed ? removed_suffix.size() : 0;
    const auto id = stream_id::parse(entry.name.substr(0, entry.name.size() - suffix));
    if (not id or entry.type != io::file_type::directory) return std::nullopt;
    if (not found.is_lost and stream_group_of(*id) != group) return std::nullopt;
    found.id = *id;
    return found;
}

std::optional<stream_record> mark_of(const io::directory_handle& group, const io::directory_entry& entry,
                                     const stream_id& id) {
    std::array<std::byte, stream_record_bytes> storage;
    const auto bytes = io::fetch_xattr_at(group, entry.name.data(), streams_attribute, storage);
    auto mark = bytes ? decode_stream_record(*bytes) : std::nullopt;
    const bool is_its = mark and mark->kind == stream_record_kind::mark and mark->id == id;
    return is_its ? mark : std::nullopt;
}

// Returns the owner of the first stream; std::nullopt if there is none.
std::optional<std::uint32_t> owner_of_streams(const io::directory_handle& group,
                                              const io::directory_entry& entry) {
    const auto listed = io::directory_handle::open(group, entry.name);
    if (not listed) return std::nullopt;
    std::optional<std::uint32_t> owner;
    (void)for_each_entry(*listed, io::stat_fields::owner, [&](const io::directory_entry& each) {
        if (not owner and each.status.knows(io::stat_fields::owner)) owner = each.status.user_id;
    });
    return owner;
}

void list_group(const io::path_handle& store, const std::string& group, const store_listing& into) {
    const auto listed = io::directory_handle::open(store, group);
    const auto done = listed ? for_each_entry(*listed, io::stat_fields::modified | io::stat_fields::type,
                                              [&](const io::directory_entry& each) {
                                                  auto found = parse(group, each);
                                                  if (not found)
                                                      return into.stray(join_path(group, each.name));
                                                  found->mark = mark_of(*listed, each, found->id);
                                                  found->stream_owner = owner_of_streams(*listed, each);
                                                  into.streams(*found);
                                              })
                             : result<void>(failure(listed.error()));
    if (done) return;
    const int code = done.error().code();
    if (code == ENOTDIR or code == ELOOP) return into.stray(group);
    if (code != ENOENT) into.failed(group, done.error());  // ENOENT: empty, and removed by a server
}

}  // namespace

void list_store(const io::path_handle& store, const store_listing& into) {
    std::vector<std::string> groups;
    const auto listed = io::directory_handle::open(store, ".");
    const auto done = listed ? for_each_entry(*listed, io::stat_fields::none,
                                              [&](const io::directory_entry& each) {
                                                  if (is_group(each.name))
                                                      groups.emplace_back(each.name);
                                                  else
                                                      into.stray(std::string(each.name));
                                              })
                             : result<void>(failure(listed.error()));
    if (not done and done.error().code() != ENOENT) into.failed("", done.error());
    for (const std::string& group : groups)
        list_group(store, group, into);
}

}  // namespace sluice::vfs
