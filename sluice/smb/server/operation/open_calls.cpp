#include "sluice/smb/server/operation/open_calls.hpp"

#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/extended_attributes.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/node_data.hpp"
#include "sluice/vfs/node_names.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

namespace {

// The file is there; what of the stream?
[[nodiscard]] nt_status find_stream(const accessor& by, const lookup_request& wanted, lookup_result& found) {
    if (not by.tree.volume().features().has_streams) return nt_status::object_name_invalid;
    result<vfs::node_ptr> stream = vfs::open_stream(*found.node, {.name = wanted.stream});
    if (stream) {
        found.node = *std::move(stream);
        const auto status = asked_status(*found.node);
        if (not status) return status.error();
        found.status = *status;
        return nt_status::success;
    }
    if (stream.error() != std::errc::no_such_file_or_directory) return status_of(stream.error());
    found.is_stream_missing = true;
    return wanted.may_create ? nt_status::success : nt_status::object_name_not_found;
}

void find_directory(const accessor& by, std::string_view path, lookup_result& found) {
    auto directory = by.tree.volume().find_directory(vfs::split_path(path).parent);
    // Not behind a mount: the lookup of its name would have failed first.
    if (not directory) return;
    found.directory = *std::move(directory);
    found.allowed_in_directory = rights_to(by, *found.directory->node, found.directory->status);
}

// --- creation
// -------------------------------------------------------------------------------------------------

using given_security = std::optional<wire::security_descriptor>;

// The descriptor that a CREATE gives. To set an audit list takes a privilege; without it, the list
// is inherited.
[[nodiscard]] std::expected<given_security, nt_status> security_in(const accessor& by,
                                                                   const wire::create_args& args) {
    const auto& bytes = args.contexts.security_descriptor;
    if (not bytes) return std::nullopt;
    auto decoded = wire::decode_security_descriptor(*bytes);
    if (not decoded) return std::unexpected(nt_status::invalid_security_descr);
    if (by.tree.audits) return *std::move(decoded);
    if (decoded->sacl) return std::unexpected(nt_status::privilege_not_held);
    decoded->control = wire::without(decoded->control, wire::descriptor_control::sacl_present |
                                                           wire::descriptor_control::sacl_defaulted |
                                                           wire::descriptor_control::sacl_protected);
    return *std::move(decoded);
}

[[nodiscard]] nt_status secure(const accessor& by, const given_security& given, const creation& wanted,
                               created_node& made) {
    if (not by.tree.volume().features().has_security) return nt_status::success;
    const auto begins_with = security_for_new(by, *wanted.directory, wanted.is_directory, given);
    if (not begins_with) return status_of(begins_with.error());
    if (not*begins_with) return nt_status::success;
    made.status.reset();
    return store_security(*made.node, **begins_with);
}

[[nodiscard]] nt_status add_attributes(const accessor& by, const wire::create_args& args,
                                       created_node& made) {
    const auto& list = args.contexts.extended_attributes;
    if (not list) return nt_status::success;
    if (not by.tree.volume().features().has_extended_attributes) return nt_status::not_supported;
    made.status.reset();
    return change_extended_attributes(*made.node, *list);
}

[[nodiscard]] nt_status create_stream(vfs::node& file, std::string_view name, created_node& made) {
    result<vfs::node_ptr> stream = vfs::open_stream(file, {.name = name, .create = true, .exclusive = true});
    if (not stream) return status_of(stream.error());
    made.node = *std::move(stream);
    made.status.reset();
    return nt_status::success;
}

// Room for the size that the client has announced.
[[nodiscard]] nt_status reserve(const wire::create_args& args, vfs::node& node) {
    if (not args.contexts.allocation_bytes or node.kind() != vfs::node_kind::file) return nt_status::success;
    const auto data = vfs::data_of(node);
    if (not data) return status_of(data.error());
    result<void> done = (*data)->open_data({.read = false, .write = true});
    if (done) done = (*data)->allocate(*args.contexts.allocation_bytes);
    return done ? nt_status::success : status_of(done.error());
}

// A new name inherits the compression of its directory, unless the client does not want that.
[[nodiscard]] nt_status choose_compression(const wire::create_args& args, created_node& made) {
    const bool inherits = not wire::has(args.options, wire::create_options::no_compression);
    if (inherits or not made.status or not made.status->is_compressed) return nt_status::success;
    made.status.reset();
    const result<void> changed = made.node->change({.is_compressed = false});
    return changed ? nt_status::success : status_of(changed.error());
}

// Gives a new file its security descriptor and EAs; if that fails, it is not created.
[[nodiscard]] nt_status set_security_and_eas(const accessor& by, const wire::create_args& args,
                                             const creation& wanted, const given_security& given,
                                             created_node& made) {
    nt_status status = choose_compression(args, made);
    if (status == nt_status::success) status = secure(by, given, wanted, made);
    if (status == nt_status::success) status = add_attributes(by, args, made);
    return status;
}

[[nodiscard]] result<vfs::found_node> create_file(const accessor& by, const wire::create_args& args,
                                                  const creation& wanted) {
    vfs::creation_request how{.kind = wanted.is_directory ? vfs::node_kind::directory : vfs::node_kind::file,
                              .dos = dos_attributes_of(args.file_attributes)};
    if (not wanted.is_directory) how.dos = how.dos | vfs::dos_attributes::archive;
    return by.tree.volume().create_in(*wanted.directory->node, wanted.name, how);
}

// --- preparation
// ------------------------------------------------------------------------------------------------

// A file that is overwritten loses its streams, too.
[[nodiscard]] result<void> drop_streams(vfs::node& file) {
    const auto attached = vfs::attached_of(file);
    if (not attached) return {};
    const result<void> gone = (*attached)->remove_streams();
    // Without extended attributes, there are none.
    return not gone and gone.error().code() == EOPNOTSUPP ? result<void>() : gone;
}

[[nodiscard]] nt_status overwrite(const wire::create_args& args, vfs::node& node, bool is_stream) {
    result<void> done = vfs::open_data(node, {.read = false, .write = true});
    if (done) done = node.data()->truncate(0);
    if (done and not is_stream) {
        const vfs::metadata_change fresh_attributes{.dos = dos_attributes_of(args.file_attributes) |
                                                           vfs::dos_attributes::archive};
        done = drop_streams(node);
        if (done) done = node.change(fresh_attributes);
    }
    return done ? reserve(args, node) : status_of(done.error());
}

}  // namespace

std::expected<reply_facts, nt_status> facts_for_reply(const accessor& by, vfs::node& node,
                                                      const wire::create_args& args) noexcept {
    const auto status = asked_status(node);
    if (not status) return std::unexpected(status.error());
    return facts_for_reply(by, node, args, *status);
}

// A client that knows the file as it is now knows its rights as well ([MS-SMB2] 3.3.5.9.5).
reply_facts facts_for_reply(const accessor& by, vfs::node& node, const wire::create_args& args,
                            const vfs::metadata& status) noexcept {
    reply_facts known{.status = status};
    const auto& query = args.contexts.maximal_access;
    if (not query) return known;
    if (query->timestamp and *query->timestamp == wire::filetime_of(status.modified))
        known.maximal_access = {.status = nt_status::none_mapped};
    else
        known.maximal_access = {.status = nt_status::success, .access = rights_to(by, node)};
    return known;
}

std::expected<lookup_result, nt_status> look_up(const accessor& by, const lookup_request& wanted) noexcept {
    lookup_result found;
    auto there = by.tree.volume().find_with_status(wanted.path, wanted.links, wanted.soon, wanted.match);
    if (not there) {
        if (there.error() == std::errc::no_link) return std::unexpected(nt_status::stopped_on_symlink);
        if (there.error() != std::errc::no_such_file_or_directory)
            return std::unexpected(status_of(there.error()));
        if (not wanted.may_create) return std::unexpected(nt_status::object_name_not_found);
        find_directory(by, wanted.path, found);
        return found;
    }
    found.node = std::move(there->node);
    found.status = there->status;
    if (not wanted.stream.empty()) {
        const nt_status refused = find_stream(by, wanted, found);
        if (refused != nt_status::success) return std::unexpected(refused);
    }
    if (wanted.needs_rights) found.allowed = rights_to(by, *found.node, found.status);
    return found;
}

std::expected<created_node, nt_status> create_node(const accessor& by, const wire::create_args& args,
                                                   const creation& wanted) noexcept {
    ENSURE(wanted.directory != nullptr or (wanted.file != nullptr and not wanted.stream.empty()),
           "a file is created in a directory, and a stream in a file");
    created_node made;
    vfs::node_ptr file;  // the file of a stream, if both are new
    if (wanted.directory != nullptr) {
        const auto given = security_in(by, args);
        if (not given) return std::unexpected(given.error());
        auto fresh = create_file(by, args, wanted);
        if (not fresh) return std::unexpected(status_of(fresh.error()));
        made = {.node = std::move(fresh->node), .status = fresh->status};
        nt_status status = set_security_and_eas(by, args, wanted, *given, made);
        if (status == nt_status::success and not wanted.stream.empty()) {
            file = std::move(made.node);
            status = create_stream(*file, wanted.stream, made);
        }
        if (status == nt_status::success) status = reserve(args, *made.node);
        if (status != nt_status::success) {
            (void)vfs::remove(file != nullptr ? *file : *made.node);
            return std::unexpected(status);
        }
    } else {
        const nt_status status = create_stream(*wanted.file, wanted.stream, made);
        if (status != nt_status::success) return std::unexpected(status);
    }
    if (args.contexts.allocation_bytes) made.status.reset();
    return made;
}

std::expected<vfs::waits_for_calls, nt_status> waits_of_overwrite(vfs::node& node) noexcept {
    vfs::node_attached* const part = node.attached();
    const bool may_wait = part != nullptr and part->streams_may_wait();
    return may_wait ? vfs::waits_for_calls::yes : vfs::waits_for_calls::no;
}

std::expected<reply_facts, nt_status> prepare_node(const accessor& by, const wire::create_args& args,
                                                   vfs::node& node, const preparation& wanted) noexcept {
    if (wanted.overwrites) {
        const nt_status status = overwrite(args, node, wanted.is_stream);
        if (status != nt_status::success) return std::unexpected(status);
    }
    const bool is_data_used = wanted.data.read or wanted.data.write;
    if (is_data_used and node.kind() == vfs::node_kind::file) {
        if (const result<void> opened = vfs::open_data(node, wanted.data); not opened)
            return std::unexpected(status_of(opened.error()));
    }
    if (wanted.as_found and not wanted.overwrites) return facts_for_reply(by, node, args, *wanted.as_found);
    return facts_for_reply(by, node, args);
}

}  // namespace sluice::smb::server
