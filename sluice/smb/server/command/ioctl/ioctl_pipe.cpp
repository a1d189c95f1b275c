#include "sluice/smb/server/command/ioctl/ioctl.hpp"
#include "sluice/smb/server/net/pipe_turn.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/rpc_named_pipe.hpp"
#include "sluice/smb/wire/fsctl/fsctl_attributes.hpp"
#include "sluice/smb/wire/fsctl/fsctl_session.hpp"
#include "sluice/smb/wire/rpc/rpc_pdu.hpp"

namespace sluice::smb::server {

using wire::nt_status;

io::task<nt_status> transceive_pipe(control& c) {
    pipe_turn turn(c.r, *c.file->pipe);
    io::task<nt_status> taking = turn.take();
    const nt_status refused = co_await std::move(taking);
    if (refused != nt_status::success) co_return refused;
    if (c.file->has_ended()) co_return nt_status::file_closed;
    // A message of the pipe is one fragment. The room comes first: an answer that was taken out of
    // the pipe must not be lost.
    const std::size_t bytes_max =
        std::min<std::size_t>(c.args.output_bytes_max, wire::rpc_fragment_bytes_sent_max);
    pool_buffer answer = c.r.answer.buffers().take(bytes_max);
    byte_writer* const output = c.begin_output(bytes_max);
    const bool has_room = answer and output != nullptr;
    named_pipe::transceive_outcome got{.status = nt_status::insufficient_resources};
    if (has_room) got = c.file->pipe->transceive(c.args.input, answer.bytes());
    io::task<void> finishing = turn.finish();
    co_await std::move(finishing);
    if (wire::is_error(got.status)) {
        c.drop_output();
        co_return got.status;
    }
    output->put_bytes(*bytes_view(answer.bytes()).first(got.bytes));
    co_return got.status;
}

io::task<nt_status> peek_pipe(control& c) {
    constexpr std::size_t state_bytes = 16;
    if (c.args.output_bytes_max < state_bytes) co_return nt_status::buffer_too_small;
    io::task<nt_status> earlier = finish_earlier(c.r, *c.file->pipe);
    const nt_status refused = co_await std::move(earlier);
    if (refused != nt_status::success) co_return refused;
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
    co_return is_pipe_name(wanted->name) ? nt_status::success : nt_status::object_name_not_found;
}

}  // namespace sluice::smb::server
