#pragma once

#include <memory>
#include <optional>

#include "sluice/smb/server/net/request.hpp"
#include "sluice/smb/server/open/open.hpp"
#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"

// Internal to IOCTL ([MS-SMB2] 3.3.5.15): the declarations that its groups of controls share.

namespace sluice::smb::server {

/// One IOCTL in progress. A control writes its output, if any, and returns the status of the reply;
/// with output the reply has a body whatever the status.
class control {
public:
    control(request& of, const wire::ioctl_args& asked) noexcept : r(of), args(asked) {}
    control(const control&) = delete;
    control& operator=(const control&) = delete;

    /// Where output of up to `bytes_max` goes. Null if there is no memory: INSUFFICIENT_RESOURCES.
    [[nodiscard]] byte_writer* begin_output(std::size_t bytes_max) noexcept;
    /// The reply has no output.
    void drop_output() noexcept { output_.reset(); }
    /// Makes the output the reply's.
    [[nodiscard]] wire::nt_status reply_with_output() noexcept;
    [[nodiscard]] bool has_output() const noexcept { return output_.has_value(); }

    request& r;
    const wire::ioctl_args& args;
    std::shared_ptr<open> file;  // not null, but for the controls of the server

private:
    pool_buffer memory_;
    std::optional<byte_writer> output_;
};

/// Copies a range of `source` to the file of the control: by the file system, or by the server
/// where that cannot. Errors: FILE_CLOSED, INVALID_VIEW_SIZE if the source does not have the range,
/// FILE_LOCK_CONFLICT. Suspends.
[[nodiscard]] io::task<wire::nt_status> copy_range(control& c, std::shared_ptr<open> source,
                                                   wire::copy_chunk chunk);

/// Returns whether the request may copy data of `source`. Data of a share that requires encryption
/// are copied by encrypted requests only. The rule of the tree connection does not suffice, because
/// that is the target's ([MS-SMB2] 3.3.5.2.11).
[[nodiscard]] bool may_copy_from(const control& c, const open& source) noexcept;

using control_handler = io::task<wire::nt_status> (*)(control& c);

// clang-format off
// ioctl_session.cpp: the connection.
// [MS-SMB2] 3.3.5.15.12.
[[nodiscard]] io::task<wire::nt_status> validate_negotiate(control& c);
[[nodiscard]] io::task<wire::nt_status> query_network_interfaces(control& c);  // 3.3.5.15.11
[[nodiscard]] io::task<wire::nt_status> request_resiliency(control& c);        // 3.3.5.15.9
// ioctl_dfs.cpp: referrals to other servers.
[[nodiscard]] io::task<wire::nt_status> get_dfs_referrals(control& c);         // 3.3.5.15.2
// ioctl_pipe.cpp: named pipes.
[[nodiscard]] io::task<wire::nt_status> transceive_pipe(control& c);           // 3.3.5.15.3
[[nodiscard]] io::task<wire::nt_status> peek_pipe(control& c);                 // 3.3.5.15.4
[[nodiscard]] io::task<wire::nt_status> wait_for_pipe(control& c);             // 3.3.5.15.10
// ioctl_copy.cpp: copies between opens.
// [MS-SMB2] 3.3.5.15.5.
[[nodiscard]] io::task<wire::nt_status> request_resume_key(control& c);
[[nodiscard]] io::task<wire::nt_status> copy_chunks(control& c);               // 3.3.5.15.6
[[nodiscard]] io::task<wire::nt_status> duplicate_extents(control& c);         // [MS-FSA] 2.1.5.10
// ioctl_offload.cpp: copies by a token.
// [MS-FSA] 2.1.5.10.20.
[[nodiscard]] io::task<wire::nt_status> offload_read(control& c);
// [MS-FSA] 2.1.5.10.21.
[[nodiscard]] io::task<wire::nt_status> offload_write(control& c);
// ioctl_range.cpp: ranges of a file.
[[nodiscard]] io::task<wire::nt_status> set_sparse(control& c);
[[nodiscard]] io::task<wire::nt_status> set_zero_data(control& c);
[[nodiscard]] io::task<wire::nt_status> query_allocated_ranges(control& c);
// [MS-FSA] 2.1.5.10.24.
[[nodiscard]] io::task<wire::nt_status> query_file_regions(control& c);
[[nodiscard]] io::task<wire::nt_status> trim_file(control& c);
// ioctl_attributes.cpp: properties of a file.
[[nodiscard]] io::task<wire::nt_status> get_compression(control& c);
[[nodiscard]] io::task<wire::nt_status> set_compression(control& c);
[[nodiscard]] io::task<wire::nt_status> get_object_id(control& c);
[[nodiscard]] io::task<wire::nt_status> manage_stream_snapshots(control& c);
// [MS-FSA] 2.1.5.10.19.
[[nodiscard]] io::task<wire::nt_status> mark_handle(control& c);
// ioctl_snapshots.cpp: previous versions.
[[nodiscard]] io::task<wire::nt_status> enumerate_snapshots(control& c);       // 3.3.5.15.1
// ioctl_volume.cpp: the volume, and the file as one of it.
[[nodiscard]] io::task<wire::nt_status> get_ntfs_volume_data(control& c);
[[nodiscard]] io::task<wire::nt_status> read_file_usn_data(control& c);
// ioctl_reparse.cpp: symbolic links.
[[nodiscard]] io::task<wire::nt_status> get_reparse_point(control& c);
[[nodiscard]] io::task<wire::nt_status> set_reparse_point(control& c);
[[nodiscard]] io::task<wire::nt_status> delete_reparse_point(control& c);
// clang-format on

}  // namespace sluice::smb::server
