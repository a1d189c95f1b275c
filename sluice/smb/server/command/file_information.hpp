#pragma once

#include <expected>

#include "sluice/base/byte_cursor.hpp"
#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/wire/file/query_info.hpp"

// What QUERY_INFO tells, before it is fitted into what the client has room for.

namespace sluice::smb::server {

/// An answer as long as it wants to be.
struct information {
    bytes_view bytes;
    std::size_t fixed_bytes = 0;  // less than this is no answer at all; what follows may be cut off
    bool is_incomplete = false;   // a list without the entries that did not fit any more
};

/// Room enough for every answer but lists, which end when it does.
inline constexpr std::size_t information_bytes_max = (64U << 10) + 256;

/// A class of [MS-FSCC] 2.4 for an open file, directory or stream. `room` has information_bytes_max, of which
/// lists use as much as the client takes. Errors: INVALID_INFO_CLASS, ACCESS_DENIED (the open lacks the
/// right), NOT_SUPPORTED, BUFFER_TOO_SMALL (a list of which nothing fits), and those of the file system.
[[nodiscard]] std::expected<information, wire::nt_status> file_information(const request& r, open& one,
                                                                           const wire::query_info_args& args,
                                                                           mutable_bytes room);
/// The same for a named pipe.
[[nodiscard]] std::expected<information, wire::nt_status> pipe_information(const open& one,
                                                                           const wire::query_info_args& args,
                                                                           mutable_bytes room);
/// A class of [MS-FSCC] 2.5 for the volume a file is on.
[[nodiscard]] std::expected<information, wire::nt_status> volume_information(
    const request& r, const wire::query_info_args& args, mutable_bytes room);

/// Where an open stands, as clients write it: "\dir\file:stream".
[[nodiscard]] std::string client_path_of(const open& one);

}  // namespace sluice::smb::server
