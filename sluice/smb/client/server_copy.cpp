#include "sluice/smb/client/server_copy.hpp"

#include <algorithm>

#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/fsctl/fsctl_copy.hpp"

namespace sluice::smb::client {

namespace {

constexpr const char* step = "copy on the server";
constexpr wire::copy_chunk_limits chunk_limits{};
constexpr std::size_t chunk_request_bytes_max = 1024;
constexpr std::uint32_t answer_bytes_max = 64;

// The output of a control is valid while the reply is.
io::task<outcome<reply>> control(remote_file& on, const char* what, wire::control_code code, bytes_view input,
                                 std::uint32_t output_bytes_max) noexcept {
    request_options how = on.in().request(what);
    how.payload_bytes = std::max<std::uint64_t>(input.size(), output_bytes_max);
    how.room_bytes = static_cast<std::uint32_t>(input.size() + 192);
    const wire::ioctl_args asked{
        .code = code, .file = on.id(), .output_bytes_max = output_bytes_max, .input = input};
    io::task<outcome<reply>> asking = on.in().of().first().call(wire::command::ioctl, asked, how);
    co_return co_await std::move(asking);
}

io::task<outcome<wire::resume_key>> key_of(remote_file& from) noexcept {
    io::task<outcome<reply>> asking =
        control(from, step, wire::control_code::srv_request_resume_key, {}, answer_bytes_max);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto envelope = wire::decode_ioctl_reply(*wire::message_view::of(answered->message));
    if (not envelope) co_return failed(client_error::of_protocol(step, "invalid IOCTL reply"));
    const auto key = wire::decode_resume_key(envelope->output);
    if (not key) co_return failed(client_error::of_protocol(step, "invalid SRV_REQUEST_RESUME_KEY reply"));
    co_return *key;
}

// Copies a part, which begins at `offset`. Returns how many bytes the server has copied.
io::task<outcome<std::uint64_t>> copy_part(remote_file& to, wire::resume_key source, std::uint64_t offset,
                                           std::uint64_t bytes) noexcept {
    wire::copy_chunk_request request{.source = source};
    for (std::uint64_t at = 0; at != bytes;) {
        const auto length = std::min<std::uint64_t>(bytes - at, chunk_limits.chunk_bytes_max);
        request.chunks.push_back({.source_offset = offset + at,
                                  .target_offset = offset + at,
                                  .length = static_cast<std::uint32_t>(length)});
        at += length;
    }
    std::array<std::byte, chunk_request_bytes_max> room;
    byte_writer writer(room);
    encode(writer, request);
    const auto input = writer.finish();
    ENSURE(input.has_value(), "the chunks of a request have room");
    io::task<outcome<reply>> asking =
        control(to, step, wire::control_code::srv_copychunk_write, *input, answer_bytes_max);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto envelope = wire::decode_ioctl_reply(*wire::message_view::of(answered->message));
    if (not envelope) co_return failed(client_error::of_protocol(step, "invalid IOCTL reply"));
    const auto said = wire::decode_copy_chunk_response(envelope->output);
    if (not said or said->total_bytes_written == 0 or said->total_bytes_written > bytes)
        co_return failed(client_error::of_protocol(step, "invalid SRV_COPYCHUNK reply"));
    co_return std::uint64_t{said->total_bytes_written};
}

}  // namespace

io::task<outcome<void>> copy_on_server(remote_file& from, remote_file& to,
                                       std::uint64_t size_bytes) noexcept {
    io::task<outcome<wire::resume_key>> asking = key_of(from);
    const auto key = co_await std::move(asking);
    if (not key) co_return failed(key.error());
    for (std::uint64_t at = 0; at < size_bytes;) {
        const auto bytes = std::min<std::uint64_t>(size_bytes - at, chunk_limits.total_bytes_max);
        io::task<outcome<std::uint64_t>> copying = copy_part(to, *key, at, bytes);
        const auto copied = co_await std::move(copying);
        if (not copied) co_return failed(copied.error());
        at += *copied;
    }
    co_return outcome<void>{};
}

}  // namespace sluice::smb::client
