#pragma once

#include <expected>
#include <optional>
#include <string>

#include "sluice/smb/server/metadata/authorisation.hpp"
#include "sluice/smb/wire/create/create.hpp"
#include "sluice/vfs/volume.hpp"

// The file-system calls of a CREATE. Each touches its arguments, the nodes and the volume only, and
// may run on any thread. They block for the file system. Errors: the status for a client.

namespace sluice::smb::server {

/// The facts about the file in the reply to a CREATE.
struct reply_facts {
    vfs::metadata status{};
    wire::maximal_access_answer maximal_access{};  // if the client asks for it
};
/// Asks for it.
[[nodiscard]] std::expected<reply_facts, wire::nt_status> facts_for_reply(
    const accessor& by, vfs::node& node, const wire::create_args& args) noexcept;
/// The same for a caller that has just asked for the status.
[[nodiscard]] reply_facts facts_for_reply(const accessor& by, vfs::node& node, const wire::create_args& args,
                                          const vfs::metadata& status) noexcept;

struct lookup_request {
    std::string_view path;
    std::string_view stream;  // empty: the file itself
    vfs::follow_links links = vfs::follow_links::yes;
    vfs::data_access soon{};
    vfs::name_match match = vfs::name_match::any_case;
    bool may_create = false;  // a missing file or stream
    bool needs_rights = true;
};
/// The result of looking up a path and a stream name.
struct lookup_result {
    vfs::node_ptr node;  // null: missing; the file, if only the stream is missing
    bool is_stream_missing = false;
    vfs::metadata status{};
    wire::access_mask allowed = wire::access_mask::none;  // the user's rights to the node
    // If the file is missing, and may be created:
    std::optional<vfs::found_node> directory{};  // none: it is missing, too
    wire::access_mask allowed_in_directory = wire::access_mask::none;
};
/// Looks it up. Errors: as volume::find_with_status; OBJECT_NAME_NOT_FOUND if it is missing and not
/// to be created; STOPPED_ON_SYMLINK if it is a link whose target is missing; OBJECT_NAME_INVALID
/// for a stream in a volume that has none.
[[nodiscard]] std::expected<lookup_result, wire::nt_status> look_up(const accessor& by,
                                                                    const lookup_request& wanted) noexcept;

struct creation {
    vfs::found_node* directory = nullptr;  // where; null for a stream of `file`
    vfs::node* file = nullptr;
    std::string_view name;
    std::string_view stream;
    bool is_directory = false;
};
struct created_node {
    vfs::node_ptr node;
    std::optional<vfs::metadata> status{};  // none: it has changed since it was asked for
};
/// Creates a file, directory or stream, with the security descriptor, EAs and space that the CREATE
/// gives. Either all of it succeeds, or nothing remains.
[[nodiscard]] std::expected<created_node, wire::nt_status> create_node(const accessor& by,
                                                                       const wire::create_args& args,
                                                                       const creation& wanted) noexcept;

struct preparation {
    bool overwrites = false;
    bool is_stream = false;
    vfs::data_access data{};
    std::optional<vfs::metadata> as_found{};  // the status, if it is known
};
/// Returns whether the overwrite of a file or stream may wait for other calls, because it removes
/// large streams. Errors: none of its own. Blocks: for the file system.
[[nodiscard]] std::expected<vfs::waits_for_calls, wire::nt_status> waits_of_overwrite(
    vfs::node& node) noexcept;
/// Overwrites the file if that is asked for, makes its data accessible, and asks for
/// the facts in the reply.
[[nodiscard]] std::expected<reply_facts, wire::nt_status> prepare_node(const accessor& by,
                                                                       const wire::create_args& args,
                                                                       vfs::node& node,
                                                                       const preparation& wanted) noexcept;

}  // namespace sluice::smb::server
