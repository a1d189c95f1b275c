#include "sluice/smb/server/command/info/file_information.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/file_times.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/smb/wire/fscc/fscc_pipe_information.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::entry_outcome;
using wire::file_information_class;
using wire::nt_status;
using answer = std::expected<information, nt_status>;

namespace {

constexpr std::size_t name_fixed_bytes = 8;   // a length, and the first of the name, rounded up
constexpr std::size_t all_fixed_bytes = 104;  // rounded up, too
constexpr std::size_t stream_fixed_bytes = 32;
constexpr std::uint32_t symlink_tag = 0xa000'000c;

template <class Encode>
[[nodiscard]] answer written(mutable_bytes room, std::size_t fixed_bytes, Encode&& encode_into) {
    byte_writer writer(room);
    if (not encode_into(writer)) return std::unexpected(nt_status::object_name_invalid);
    const auto bytes = writer.finish();
    if (not bytes) return std::unexpected(nt_status::insufficient_resources);
    return information{.bytes = bytes_view(*bytes),
                       .fixed_bytes = fixed_bytes == 0 ? bytes->size() : fixed_bytes};
}

template <class Information>
[[nodiscard]] answer encoded(mutable_bytes room, const Information& what) {
    return written(room, 0, [&](byte_writer& writer) {
        encode(writer, what);
        return true;
    });
}

[[nodiscard]] answer named(mutable_bytes room, std::string_view name) {
    return written(room, name_fixed_bytes, [&](byte_writer& writer) {
        return wire::encode_name_information(writer, name).has_value();
    });
}

// A list that ends where the client's room does: an entry is there whole or not at all.
template <class Writer>
[[nodiscard]] answer listed(const Writer& list, entry_outcome last) {
    const bool is_cut = last == entry_outcome::no_room;
    const bytes_view bytes(list.bytes());
    if (is_cut and bytes.empty()) return std::unexpected(nt_status::buffer_too_small);
    return information{.bytes = bytes, .fixed_bytes = 0, .is_incomplete = is_cut};
}

[[nodiscard]] mutable_bytes room_for_list(const wire::query_info_args& args, mutable_bytes room) noexcept {
    return *room.first(std::min<std::size_t>(room.size(), args.output_bytes_max));
}

// --- what the answers are made of
// ----------------------------------------------------------------------------

[[nodiscard]] wire::basic_information basic_of(const vfs::metadata& status) noexcept {
    return {.created = wire::filetime_of(status.born),
            .accessed = wire::filetime_of(status.accessed),
            .written = wire::filetime_of(status.modified),
            .changed = wire::filetime_of(status.changed),
            .attributes = attributes_of(status)};
}

[[nodiscard]] wire::standard_information standard_of(const open& one, const vfs::metadata& status) noexcept {
    const bool is_directory = one.is_directory();
    const bool is_pending = one.file->is_delete_pending();
    // Windows does not count a link that will be removed. Directories have one, whatever Unix
    // reports.
    const std::uint32_t links = is_directory ? 1 : status.links;
    return {.allocation_bytes = is_directory ? 0 : status.allocated_bytes,
            .end_of_file = is_directory ? 0 : status.size_bytes,
            .links = is_pending and links > 0 ? links - 1 : links,
            .delete_pending = is_pending,
            .directory = is_directory};
}

[[nodiscard]] wire::network_open_information network_open_of(const vfs::metadata& status) noexcept {
    const wire::open_information all = open_information_of(status);
    return {.created = all.creation_time,
            .accessed = all.last_access_time,
            .written = all.last_write_time,
            .changed = all.change_time,
            .allocation_bytes = all.allocation_bytes,
            .end_of_file = all.end_of_file_bytes,
            .attributes = all.attributes};
}

[[nodiscard]] wire::compression_information compression_of(const vfs::metadata& status) noexcept {
    if (not status.is_compressed) return {.compressed_bytes = status.size_bytes};
    return {.compressed_bytes = std::min(status.size_bytes, status.allocated_bytes),
            .format = wire::compression_format::lznt1};
}

// As OS/2 counted, and clients still do: a list's length, and each attribute with its lengths and
// zero.
[[nodiscard]] wire::ea_information ea_of(const file_facts& known) {
    if (not known.attributes or known.attributes->empty()) return {};
    std::size_t bytes = 4;
    for (const vfs::extended_attribute& each : *known.attributes)
        bytes += 4 + each.name.size() + 1 + each.value.size();
    return {.ea_bytes = static_cast<std::uint32_t>(std::min<std::size_t>(bytes, UINT32_MAX))};
}

[[nodiscard]] answer all_of(const open& one, const file_facts& known, mutable_bytes room) {
    const wire::all_information all{.basic = basic_of(known.status),
                                    .standard = standard_of(one, known.status),
                                    .internal = {.file_number = known.status.id},
                                    .ea = ea_of(known),
                                    .access = {.granted = one.access},
                                    .position = {.offset = one.position.load(std::memory_order_relaxed)},
                                    .mode = {.mode = one.mode.load(std::memory_order_relaxed)},
                                    .alignment = {},
                                    .name = client_path_of(one)};
    return written(room, all_fixed_bytes,
                   [&](byte_writer& writer) { return encode(writer, all).has_value(); });
}

// A buffer smaller than the smallest entry is too small. If only the first entry is larger, it is
// truncated.
[[nodiscard]] answer listed_streams(const wire::stream_list_writer& list, entry_outcome last) {
    const bytes_view bytes(list.bytes());
    const bool is_cut = last == entry_outcome::no_room;
    return information{
        .bytes = bytes, .fixed_bytes = is_cut ? stream_fixed_bytes : 0, .is_incomplete = is_cut};
}

// The streams of a file, also if one of them is open. `known.status` is that of the file.
[[nodiscard]] answer streams_of(const file_facts& known, mutable_bytes room) {
    const vfs::metadata& status = known.status;
    wire::stream_list_writer list(room);
    entry_outcome last = entry_outcome::written;
    // A directory has no unnamed stream.
    if (status.kind != vfs::node_kind::directory)
        last = list.put(
            {.name = "::$DATA", .size_bytes = status.size_bytes, .allocation_bytes = status.allocated_bytes});
    const auto& all = known.streams;
    if (not all)
        return all.error() == std::errc::operation_not_supported
                   ? listed_streams(list, last)
                   : answer(std::unexpected(status_of(all.error())));
    for (const vfs::stream_info& each : *all) {
        if (last == entry_outcome::no_room) break;
        last = list.put({.name = ":" + each.name + ":$DATA",
                         .size_bytes = each.size_bytes,
                         .allocation_bytes = each.allocated_bytes});
    }
    return listed_streams(list, last);
}

[[nodiscard]] answer full_eas_of(const file_facts& known, const wire::query_info_args& args,
                                 mutable_bytes room) {
    const auto& all = known.attributes;
    if (not all)
        return std::unexpected(all.error() == std::errc::operation_not_supported ? nt_status::not_supported
                                                                                 : status_of(all.error()));
    wire::ea_list_writer list(room);
    if (args.input.empty()) {
        if (all->empty()) return std::unexpected(nt_status::no_eas_on_file);
        entry_outcome last = entry_outcome::written;
        for (const vfs::extended_attribute& each : *all) {
            if (last == entry_outcome::no_room) break;
            last = list.put({.name = each.name, .value = std::span<const std::byte>(each.value)});
        }
        return listed(list, last);
    }
    // The requested ones; missing ones are listed with an empty value.
    wire::ea_name_list_reader names(args.input);
    entry_outcome last = entry_outcome::written;
    while (last != entry_outcome::no_room) {
        const auto name = names.next();
        if (not name) return std::unexpected(nt_status::ea_list_inconsistent);
        if (not*name) break;
        const auto found = std::ranges::find_if(
            *all, [&](const auto& each) { return equal_ignoring_case(each.name, **name); });
        const bytes_view value =
            found == all->end() ? bytes_view{} : bytes_view(std::span<const std::byte>(found->value));
        last = list.put({.name = **name, .value = value});
    }
    return listed(list, last);
}

// Only the name by which the file was opened is known; a file with more names is not supported.
[[nodiscard]] answer links_of(const open& one, const vfs::metadata& status, mutable_bytes room) {
    if (status.links > 1 and not one.is_directory()) return std::unexpected(nt_status::not_supported);
    const std::string path = one.node->path();
    const std::size_t slash = path.rfind('/');
    wire::hard_link_list_writer list(room);
    const std::string_view name =
        slash == std::string::npos ? std::string_view(path) : std::string_view(path).substr(slash + 1);
    const entry_outcome outcome = list.put({.directory_number = 0, .name = name});
    const auto bytes = list.finish(static_cast<std::uint32_t>(24 + 2 * name.size()));
    return information{
        .bytes = bytes_view(bytes), .fixed_bytes = 8, .is_incomplete = outcome == entry_outcome::no_room};
}

[[nodiscard]] answer short_name_of(const open& one, const file_facts& known, mutable_bytes room) {
    if (not known.short_name.empty()) return named(room, known.short_name.view());
    const std::string path = one.node->path();
    const std::string_view name = vfs::split_path(path).name;
    if (not vfs::is_short_name(name)) return std::unexpected(nt_status::object_name_not_found);
    return named(room, vfs::short_name(name).view());
}

[[nodiscard]] answer normalized_name_of(const request& r, const open& one, mutable_bytes room) {
    if (not r.connection().agreed.is_at_least(wire::dialect::smb_3_1_1))
        return std::unexpected(nt_status::not_supported);
    return named(room, std::string_view(client_path_of(one)).substr(1));
}

[[nodiscard]] wire::id_information id_of(const request& r, const vfs::metadata& status) noexcept {
    return {.volume_serial = r.files().volume().identity().serial,
            .file_number = wide_file_number(status.id)};
}

[[nodiscard]] access_mask needed_for(file_information_class what) noexcept {
    switch (what) {
        case file_information_class::basic:
        case file_information_class::all:
        case file_information_class::network_open:
        case file_information_class::attribute_tag:
            return access_mask::read_attributes;
        case file_information_class::full_ea:
            return access_mask::read_ea;
        default:
            return access_mask::none;
    }
}

// The facts about the file that an information class needs.
struct needs {
    bool status = false;
    bool attributes = false;
    bool streams = false;
    bool short_name = false;
};

[[nodiscard]] needs needs_of(file_information_class what) noexcept {
    switch (what) {
        case file_information_class::access:
        case file_information_class::position:
        case file_information_class::mode:
        case file_information_class::alignment:
        case file_information_class::name:
        case file_information_class::normalized_name:
            return {};
        case file_information_class::alternate_name:
            return {.short_name = true};
        case file_information_class::ea:
        case file_information_class::full_ea:
            return {.attributes = true};
        case file_information_class::all:
            return {.status = true, .attributes = true};
        case file_information_class::stream:
            return {.streams = true};
        default:
            return {.status = true};
    }
}

}  // namespace

std::string client_path_of(const open& one) {
    std::string path = '\\' + one.node->path();
    std::ranges::replace(path, '/', '\\');
    if (const std::string stream = one.node->stream_name(); not stream.empty()) {
        path += ':';
        path += stream;
    }
    return path;
}

nt_status may_query(const open& one, file_information_class what) noexcept {
    return one.grants(needed_for(what)) ? nt_status::success : nt_status::access_denied;
}

std::expected<file_facts, nt_status> ask_file(vfs::node& node, file_information_class what) noexcept {
    const needs of = needs_of(what);
    file_facts known;
    if (of.status) {
        const result<vfs::metadata> status = node.status();
        if (not status) return std::unexpected(status_of(status.error()));
        known.status = *status;
    }
    const auto attached = vfs::attached_of(node);
    if (of.attributes)
        known.attributes = attached ? (*attached)->extended_attributes() : failure(attached.error());
    if (of.streams) {
        known.streams = attached ? (*attached)->streams() : failure(attached.error());
        const bool is_stream = attached and not node.stream_name().empty();
        const result<vfs::metadata> status = is_stream ? (*attached)->file_status() : node.status();
        if (not status) return std::unexpected(status_of(status.error()));
        known.status = *status;
    }
    if (const auto names = vfs::names_of(node); of.short_name and names) {
        const auto other = (*names)->alternate_name();
        if (not other) return std::unexpected(status_of(other.error()));
        known.short_name = *other;
    }
    return known;
}

answer file_information(const request& r, const open& one, const wire::query_info_args& args,
                        const file_facts& known, mutable_bytes room) {
    const vfs::metadata& status = known.status;
    switch (file_information_class(args.information_class)) {
        case file_information_class::ea:
            return encoded(room, ea_of(known));
        case file_information_class::access:
            return encoded(room, wire::access_information{.granted = one.access});
        case file_information_class::position:
            return encoded(
                room, wire::position_information{.offset = one.position.load(std::memory_order_relaxed)});
        case file_information_class::mode:
            return encoded(room, wire::mode_information{.mode = one.mode.load(std::memory_order_relaxed)});
        case file_information_class::alignment:
            return encoded(room, wire::alignment_information{});
        case file_information_class::name:
            return named(room, client_path_of(one));
        case file_information_class::normalized_name:
            return normalized_name_of(r, one, room);
        case file_information_class::alternate_name:
            return short_name_of(one, known, room);
        case file_information_class::full_ea:
            return full_eas_of(known, args, room_for_list(args, room));
        case file_information_class::basic:
            return encoded(room, basic_of(status));
        case file_information_class::standard:
            return encoded(room, standard_of(one, status));
        case file_information_class::internal:
            return encoded(room, wire::internal_information{.file_number = status.id});
        case file_information_class::all:
            return all_of(one, known, room);
        case file_information_class::stream:
            return streams_of(known, room_for_list(args, room));
        case file_information_class::compression:
            return encoded(room, compression_of(status));
        case file_information_class::network_open:
            return encoded(room, network_open_of(status));
        case file_information_class::attribute_tag:
            return encoded(room,
                           wire::attribute_tag_information{
                               .attributes = attributes_of(status),
                               .reparse_tag = status.kind == vfs::node_kind::symlink ? symlink_tag : 0});
        case file_information_class::hard_link:
            return links_of(one, status, room_for_list(args, room));
        case file_information_class::id:
            return encoded(room, id_of(r, status));
        case file_information_class::quota:
            return std::unexpected(nt_status::not_supported);
        default:
            return std::unexpected(nt_status::invalid_info_class);
    }
}

answer pipe_information(const open& one, const wire::query_info_args& args, mutable_bytes room) {
    switch (file_information_class(args.information_class)) {
        case file_information_class::basic:
            return encoded(room, wire::basic_information{.attributes = wire::file_attributes::normal});
        case file_information_class::standard:
            // The values of Windows for its pipes, which are removed with their last handle.
            return encoded(room, wire::standard_information{
                                     .allocation_bytes = 4096, .links = 1, .delete_pending = true});
        case file_information_class::access:
            return encoded(room, wire::access_information{.granted = one.access});
        case file_information_class::pipe:
            return encoded(room, wire::pipe_information{});
        case file_information_class::pipe_local:
            return encoded(room, wire::pipe_local_information{});
        default:
            return std::unexpected(nt_status::invalid_parameter);
    }
}

}  // namespace sluice::smb::server
