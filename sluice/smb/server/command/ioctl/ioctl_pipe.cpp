#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/rpc_named_pipe.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"

namespace sluice::smb::server {

using wire::nt_status;

io::task<nt_status> transceive_pipe(control& c) {
    named_pipe& pipe = *c.file->pipe;
    // To an earlier request, to be read first.
    if (pipe.has_answer()) co_return nt_status::pipe_busy;
    if (not pipe.write(c.args.input)) co_return nt_status::pipe_disconnected;
    if (not pipe.has_answer()) co_return nt_status::invalid_pipe_state;  // only a part of a request
    byte_writer* const output = c.begin_output(c.args.output_bytes_max);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    const std::size_t bytes = std::min<std::size_t>(pipe.readable_bytes(), c.args.output_bytes_max);
    pool_buffer answer = c.r.answer.buffers().take(bytes);
    if (not answer) co_return nt_status::insufficient_resources;
    const named_pipe::read_outcome got = pipe.read(answer.bytes());
    output->put_bytes(*bytes_view(answer.bytes()).first(got.bytes));
    co_return got.more ? nt_status::buffer_overflow : nt_status::success;
}

io::task<nt_status> peek_at_pipe(control& c) {
    constexpr std::size_t state_bytes = 16;
    if (c.args.output_bytes_max < state_bytes) co_return nt_status::buffer_too_small;
    byte_writer* const output = c.begin_output(state_bytes);
    if (output == nullptr) co_return nt_status::insufficient_resources;
    const auto bytes = static_cast<std::uint32_t>(c.file->pipe->readable_bytes());
    encode(*output, wire::pipe_peek_state{.readable_bytes = bytes, .messages = bytes != 0 ? 1U : 0U});
    co_return nt_status::success;
}

// Our pipes listen always.
io::task<nt_status> wait_for_pipe(control& c) {
    if (not c.r.tree->target->is_pipes()) co_return nt_status::invalid_device_request;
    const auto wanted = wire::decode_pipe_wait_request(c.args.input);
    if (not wanted) co_return nt_status::invalid_parameter;
    const std::unique_ptr<named_pipe> pipe = make_named_pipe(c.r.host(), wanted->name);
    co_return pipe != nullptr ? nt_status::success : nt_status::object_name_not_found;
}

}  // namespace sluice::smb::server
