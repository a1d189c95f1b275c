#include "sluice/smb/client/remote_file.hpp"

#include "sluice/smb/client/wire_path.hpp"
#include "sluice/smb/wire/file/close.hpp"
#include "sluice/smb/wire/file/flush.hpp"
#include "sluice/smb/wire/file/query_info.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/file/set_info.hpp"
#include "sluice/smb/wire/fscc/fscc_file_lists.hpp"
#include "sluice/smb/wire/fscc/fscc_file_names.hpp"
#include "sluice/smb/wire/fscc/fscc_file_scalars.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::client {

using wire::nt_status;

namespace {

// A WRITE whose data are sent from the caller's memory.
struct write_head {
    const wire::write_args& args;
    std::size_t data_bytes;
};
void encode(byte_writer& writer, const write_head& head) noexcept {
    wire::encode_write_request_head(writer, head.args, head.data_bytes);
}

}  // namespace

io::task<outcome<std::size_t>> remote_file::co_read(mutable_bytes into, std::uint64_t offset_bytes) noexcept {
    request_options how = tree_.request("read");
    how.payload_bytes = into.size();
    how.into = into;
    wire::read_args asked{.file = id_,
                          .offset_bytes = offset_bytes,
                          .length_bytes = static_cast<std::uint32_t>(into.size()),
                          .padding = static_cast<std::uint8_t>(wire::read_reply_data_offset)};
    for (;;) {
        how.channel_sequence = tree_.of().channel_sequence();
        connection& channel = tree_.of().idlest();
        asked.flags = channel.agreed().compression.is_on() ? wire::read_flags::request_compressed
                                                           : wire::read_flags::none;
        io::task<outcome<reply>> asking = channel.call(wire::command::read, asked, how);
        const outcome<reply> answered = co_await std::move(asking);
        if (answered) co_return answered->read_bytes;
        if (answered.error().status() == nt_status::end_of_file) co_return std::size_t{0};
        if (not tree_.of().can_repeat(channel, answered.error())) co_return failed(answered.error());
    }
}

io::task<outcome<std::size_t>> remote_file::co_write(bytes_view from, std::uint64_t offset_bytes,
                                                     wire::write_flags flags) noexcept {
    request_options how = tree_.request("write");
    how.payload_bytes = from.size();
    how.payload = from;
    const wire::write_args asked{.file = id_, .offset_bytes = offset_bytes, .flags = flags};
    wait_policy so_far;
    for (;;) {
        how.channel_sequence = tree_.of().channel_sequence();
        connection& channel = tree_.of().idlest();
        io::task<outcome<reply>> asking =
            channel.call(wire::command::write, write_head{.args = asked, .data_bytes = from.size()}, how);
        const outcome<reply> answered = co_await std::move(asking);
        if (not answered) {
            io::task<bool> waiting = tree_.of().co_can_repeat(channel, answered.error(), how, so_far);
            const bool may_repeat = co_await std::move(waiting);
            if (not may_repeat) co_return failed(answered.error());
            continue;
        }
        const auto said = wire::decode_write_reply(*wire::message_view::of(answered->message));
        if (not said or said->count_bytes > from.size())
            co_return failed(client_error::of_protocol("write", "invalid WRITE reply"));
        co_return std::size_t{said->count_bytes};
    }
}

io::task<outcome<void>> remote_file::co_flush() noexcept {
    io::task<outcome<reply>> asking =
        over().call(wire::command::flush, wire::flush_args{.file = id_}, tree_.request("flush"));
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    co_return outcome<void>{};
}

io::task<outcome<file_status>> remote_file::co_close() noexcept {
    const wire::close_args asked{.flags = wire::close_flags::query_attributes, .file = id_};
    io::task<outcome<reply>> asking = over().call(wire::command::close, asked, tree_.request("close"));
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto said = wire::decode_close_reply(*wire::message_view::of(answered->message));
    if (not said) co_return failed(client_error::of_protocol("close", "invalid CLOSE reply"));
    co_return said->information;
}

io::task<outcome<file_status>> remote_file::co_status() noexcept {
    constexpr const char* step = "query size and times";
    const wire::query_info_args asked{
        .information_class = static_cast<std::uint8_t>(wire::file_information_class::network_open),
        .output_bytes_max = 56,
        .file = id_};
    io::task<outcome<reply>> asking = over().call(wire::command::query_info, asked, tree_.request(step));
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto envelope = wire::decode_query_info_reply(*wire::message_view::of(answered->message));
    if (not envelope) co_return failed(client_error::of_protocol(step, "invalid QUERY_INFO reply"));
    const auto said = wire::decode_network_open_information(envelope->output);
    if (not said) co_return failed(client_error::of_protocol(step, "invalid file information"));
    co_return file_status{.creation_time = said->created,
                          .last_access_time = said->accessed,
                          .last_write_time = said->written,
                          .change_time = said->changed,
                          .allocation_bytes = said->allocation_bytes,
                          .end_of_file_bytes = said->end_of_file,
                          .attributes = said->attributes};
}

io::task<outcome<std::uint64_t>> remote_file::co_file_number() noexcept {
    constexpr const char* step = "query the number of the file";
    const wire::query_info_args asked{
        .information_class = static_cast<std::uint8_t>(wire::file_information_class::internal),
        .output_bytes_max = 8,
        .file = id_};
    io::task<outcome<reply>> asking = over().call(wire::command::query_info, asked, tree_.request(step));
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) co_return failed(answered.error());
    const auto envelope = wire::decode_query_info_reply(*wire::message_view::of(answered->message));
    if (not envelope) co_return failed(client_error::of_protocol(step, "invalid QUERY_INFO reply"));
    const auto said = wire::decode_internal_information(envelope->output);
    if (not said) co_return failed(client_error::of_protocol(step, "invalid FileInternalInformation"));
    co_return said->file_number;
}

namespace {

// The names of a list of streams, until one is not the data of the file.
[[nodiscard]] outcome<bool> has_named_stream(bytes_view list, const char* step) {
    wire::stream_list_reader reader(list);
    for (;;) {
        const auto next = reader.next();
        if (not next) return failed(client_error::of_protocol(step, "invalid FileStreamInformation"));
        if (not*next) return false;
        const auto name = wire::utf8_of((*next)->name_utf16);
        if (not name or (not name->empty() and *name != "::$DATA")) return true;
    }
}

// Returns whether a server without streams answers the query with this status.
[[nodiscard]] bool has_no_streams(nt_status status) noexcept {
    return status == nt_status::invalid_info_class or status == nt_status::not_supported or
           status == nt_status::invalid_parameter or status == nt_status::not_implemented or
           status == nt_status::invalid_device_request;
}

}  // namespace

io::task<outcome<bool>> remote_file::co_has_named_streams() noexcept {
    constexpr const char* step = "query the streams";
    constexpr std::uint32_t answer_bytes_max = 4096;
    request_options how = tree_.request(step);
    how.payload_bytes = answer_bytes_max;
    const wire::query_info_args asked{
        .information_class = static_cast<std::uint8_t>(wire::file_information_class::stream),
        .output_bytes_max = answer_bytes_max,
        .file = id_};
    io::task<outcome<reply>> asking = over().call(wire::command::query_info, asked, how);
    const outcome<reply> answered = co_await std::move(asking);
    if (not answered) {
        if (has_no_streams(answered.error().status())) co_return false;
        co_return failed(answered.error());
    }
    // The unnamed stream alone always fits.
    if (answered->header.status == nt_status::buffer_overflow) co_return true;
    const auto envelope = wire::decode_query_info_reply(*wire::message_view::of(answered->message));
    if (not envelope) co_return failed(client_error::of_protocol(step, "invalid QUERY_INFO reply"));
    if (envelope->output.empty()) co_return false;  // it is a directory
    co_return has_named_stream(envelope->output, step);
}

io::task<outcome<void>> remote_file::set_information(const char* step, wire::file_information_class which,
                                                     bytes_view encoded) noexcept {
    request_options how = tree_.request(step);
    how.room_bytes = static_cast<std::uint32_t>(encoded.size() + 128);
    const wire::set_info_args asked{
        .information_class = static_cast<std::uint8_t>(which), .file = id_, .input = encoded};
    wait_policy so_far;
    for (;;) {
        how.channel_sequence = tree_.of().channel_sequence();
        connection& channel = over();
        io::task<outcome<reply>> asking = channel.call(wire::command::set_info, asked, how);
        const outcome<reply> answered = co_await std::move(asking);
        if (answered) co_return outcome<void>{};
        io::task<bool> waiting = tree_.of().co_can_repeat(channel, answered.error(), how, so_far);
        const bool may_repeat = co_await std::move(waiting);
        if (not may_repeat) co_return failed(answered.error());
    }
}

io::task<outcome<void>> remote_file::set_size(std::uint64_t bytes) noexcept {
    std::array<std::byte, 8> room;
    byte_writer writer(room);
    encode(writer, wire::end_of_file_information{.end_of_file = bytes});
    io::task<outcome<void>> setting =
        set_information("set the size", wire::file_information_class::end_of_file, *writer.finish());
    co_return co_await std::move(setting);
}

io::task<outcome<void>> remote_file::set_times(file_times times) noexcept {
    std::array<std::byte, 40> room;
    byte_writer writer(room);
    encode(writer, wire::basic_information{
                       .created = times.created, .accessed = times.accessed, .written = times.written});
    io::task<outcome<void>> setting =
        set_information("set the times", wire::file_information_class::basic, *writer.finish());
    co_return co_await std::move(setting);
}

io::task<outcome<void>> remote_file::delete_on_close() noexcept {
    std::array<std::byte, 1> room;
    byte_writer writer(room);
    encode(writer, wire::disposition_information{.delete_on_close = true});
    io::task<outcome<void>> setting =
        set_information("delete", wire::file_information_class::disposition, *writer.finish());
    co_return co_await std::move(setting);
}

io::task<outcome<void>> remote_file::rename(std::string to, bool replaces) noexcept {
    constexpr const char* step = "rename";
    const auto utf16 = wire_path_of(to, step);
    if (not utf16) co_return failed(utf16.error());
    std::string target = std::move(to);
    std::ranges::replace(target, '/', '\\');
    std::vector<std::byte> room(utf16->size() + 64);
    byte_writer writer(room);
    const auto encoded =
        encode(writer, wire::rename_information{.replace_if_exists = replaces, .target = std::move(target)});
    const auto input = writer.finish();
    if (not encoded or not input) co_return failed(client_error::of_policy(step, "the new name is invalid"));
    io::task<outcome<void>> setting = set_information(step, wire::file_information_class::rename, *input);
    co_return co_await std::move(setting);
}

}  // namespace sluice::smb::client
