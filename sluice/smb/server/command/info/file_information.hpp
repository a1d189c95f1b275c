#pragma once

#include <expected>
#include <optional>
#include <vector>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/fscc/fscc_information_class.hpp"
#include "sluice/vfs/node_attached.hpp"
#include "sluice/vfs/short_name.hpp"

// The results of QUERY_INFO, before they are fitted into the client's buffer.

namespace sluice::smb::server {

/// A result in full length.
struct information {
    bytes_view bytes;
    std::size_t fixed_bytes = 0;  // shorter results are errors; the rest may be truncated
    bool is_incomplete = false;   // a list without the entries that did not fit
};

/// Room enough for every answer but lists, which end when it does.
inline constexpr std::size_t information_bytes_max = (64U << 10) + 256;
/// The same for the list of a file's streams: the large ones (vfs::limits), and those that fit into
/// extended attributes, with the longest names.
inline constexpr std::size_t stream_list_bytes_max = 1U << 20;

/// Returns ACCESS_DENIED if the open lacks the right that a class of [MS-FSCC] 2.4 needs.
[[nodiscard]] wire::nt_status may_query(const open& one, wire::file_information_class what) noexcept;

/// The facts about a file that take a file-system call. Members that an information class
/// does not need are empty.
struct file_facts {
    vfs::metadata status{};  // with `streams`: the status of the file, also for a stream
    result<std::vector<vfs::extended_attribute>> attributes{};
    result<std::vector<vfs::stream_info>> streams{};
    vfs::short_name short_name{};  // if it differs from the name
};
/// Asks for the facts that a class needs. Touches only the node. Errors: those of node::status.
/// Blocks: for the file system. Thread safety: any thread.
[[nodiscard]] std::expected<file_facts, wire::nt_status> ask_file(vfs::node& node,
                                                                  wire::file_information_class what) noexcept;

/// A class of [MS-FSCC] 2.4 for an open file, directory or stream of which `known` was asked.
/// `room` has at least information_bytes_max, of which lists use as much as the client takes.
/// Errors: INVALID_INFO_CLASS, NOT_SUPPORTED, BUFFER_TOO_SMALL (a list of which nothing fits), and
/// those of the file system.
[[nodiscard]] std::expected<information, wire::nt_status> file_information(const request& r, const open& one,
                                                                           const wire::query_info_args& args,
                                                                           const file_facts& known,
                                                                           mutable_bytes room);
/// The same for a named pipe.
[[nodiscard]] std::expected<information, wire::nt_status> pipe_information(const open& one,
                                                                           const wire::query_info_args& args,
                                                                           mutable_bytes room);
/// The facts about a volume that a class of [MS-FSCC] 2.5 needs: its space, the state of its
/// quotas, or nothing.
struct volume_facts {
    std::optional<vfs::volume_space> space{};
    vfs::quota_state quotas{};
};
/// Asks for the facts that a class needs. The space is that of a user with a quota, on a volume of
/// at most `size_limit_bytes`, if that is not 0. Errors: those of volume::space. Blocks: for the
/// file system. Thread safety: any thread.
[[nodiscard]] std::expected<volume_facts, wire::nt_status> ask_volume(
    vfs::volume& volume, wire::filesystem_information_class what, std::uint64_t size_limit_bytes) noexcept;
/// A class of [MS-FSCC] 2.5 for the volume a file is on, of which `known` was asked.
[[nodiscard]] std::expected<information, wire::nt_status> volume_information(
    const request& r, const wire::query_info_args& args, const volume_facts& known, mutable_bytes room);

/// Returns the path of an open in the form that clients use: "\dir\file:stream".
[[nodiscard]] std::string client_path_of(const open& one);

}  // namespace sluice::smb::server
