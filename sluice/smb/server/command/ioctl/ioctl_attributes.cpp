// Properties of a file that only controls tell and set.

#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/metadata/description.hpp"
#include "sluice/smb/server/metadata/status_of_error.hpp"
#include "sluice/smb/server/net/change_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"

namespace sluice::smb::server {

using wire::access_mask;
using wire::nt_status;

// The file system chooses how it compresses. For clients, there is one format.
io::task<nt_status> get_compression(control& c) {
    constexpr std::size_t reply_bytes = 2;
    if (c.args.output_bytes_max < reply_bytes) co_return nt_status::invalid_parameter;
    const auto status = co_await c.r.call(*c.file, [&] { return asked_status(*c.file->node); });
    if (not status) co_return status.error();
    byte_writer* const output = c.begin_output(reply_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    using wire::compression_format;
    encode(*output, wire::compression_state{status->is_compressed ? compression_format::lznt1
                                                                  : compression_format::none});
    co_return nt_status::success;
}

io::task<nt_status> set_compression(control& c) {
    if (not wire::has_any(c.file->access, access_mask::write_data)) co_return nt_status::access_denied;
    const auto wanted = wire::decode_compression_state(c.args.input);
    if (not wanted) co_return nt_status::invalid_parameter;
    const bool compresses = wanted->format != wire::compression_format::none;
    if (compresses and not c.r.files().volume().features().has_compression)
        co_return nt_status::not_supported;
    const vfs::metadata_change change{.is_compressed = compresses};
    co_return co_await change_in_turn(c.r, *c.file, [&] {
        const result<void> changed = c.file->node->change(change);
        return changed ? nt_status::success : status_of(changed.error());
    });
}

// Every file has an identifier, so that one control is like the other. No volume is of a domain.
io::task<nt_status> get_object_id(control& c) {
    constexpr std::size_t reply_bytes = 64;
    if (c.args.output_bytes_max < reply_bytes) co_return nt_status::invalid_parameter;
    const auto status = co_await c.r.call(*c.file, [&] { return asked_status(*c.file->node); });
    if (not status) co_return status.error();
    byte_writer* const output = c.begin_output(reply_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    wire::object_id known{.id = object_id_of(*status)};
    known.birth_volume_object_and_domain = {object_id_of(c.r.files().volume().identity()), known.id, {}};
    encode(*output, known);
    co_return nt_status::success;
}

// No volume keeps snapshots of streams.
io::task<nt_status> manage_stream_snapshots(control& /*c*/) {
    co_return nt_status::not_supported;
}

// A mark selects one of several copies of the data. Volumes here have one.
io::task<nt_status> mark_handle(control& c) {
    const auto asked = wire::decode_mark_handle_request(c.args.input);
    if (not asked) co_return nt_status::buffer_too_small;
    if (c.file->is_directory()) co_return nt_status::directory_not_supported;
    const bool reads_copy = asked->handle_info == wire::mark_handle_request::read_copy;
    if (not reads_copy and asked->handle_info != wire::mark_handle_request::not_read_copy)
        co_return nt_status::invalid_parameter;
    if (not wire::has(c.file->create_options, wire::create_options::no_intermediate_buffering))
        co_return nt_status::invalid_parameter;
    co_return reads_copy ? nt_status::not_redundant_storage : nt_status::success;
}

}  // namespace sluice::smb::server
