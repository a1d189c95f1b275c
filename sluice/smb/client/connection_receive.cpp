// Receives the server's frames, into a staging buffer or directly into the caller's memory, and
// authenticates them ([MS-SMB2] 3.2.5.1). All received bytes are untrusted.

#include <algorithm>
#include <cstring>

#include "sluice/io/stream/receive_queue.hpp"
#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/client/connection.hpp"
#include "sluice/smb/wire/file/read.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/server_notification.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::client {

using wire::nt_status;

namespace {

constexpr const char* step = "receive";
constexpr std::uint64_t unasked_message_id = ~std::uint64_t{0};

// The length of a READ reply up to its data.
constexpr std::size_t read_head_bytes = wire::read_reply_data_offset;
constexpr std::size_t framed_read_head_bytes = wire::frame_prefix_bytes + read_head_bytes;

[[nodiscard]] client_error broken_rule(const char* rule) noexcept {
    return client_error::of_protocol(step, rule);
}

// The fixed fields of a READ reply's body that locate its data.
struct read_extent {
    std::uint16_t structure_size;
    std::uint8_t data_offset;
    std::uint32_t data_length;
};
[[nodiscard]] read_extent extent_of(bytes_view head) noexcept {
    return {.structure_size = head.take_at<le16>(wire::header_bytes)->value(),
            .data_offset = head.take_at<le8>(wire::header_bytes + 2)->value(),
            .data_length = head.take_at<le32>(wire::header_bytes + 4)->value()};
}

}  // namespace

std::size_t connection::frame_bytes_max() const noexcept {
    if (agreed_.transact_bytes_max == 0) return limits::first_frame_bytes_max;
    const std::size_t data = std::max({agreed_.transact_bytes_max, read_bytes_max(), std::uint32_t{65536}});
    return std::min(data + limits::frame_overhead_bytes_max, wire::frame_bytes_max);
}

io::task<void> connection::receive_all() noexcept {
    while (not broken_) {
        io::task<outcome<void>> receiving = receive_frame();
        const outcome<void> received = co_await std::move(receiving);
        if (not received) break_soon(received.error());
    }
    if (--running_ == 0) finish();
}

// Receives until `bytes` bytes are staged.
io::task<outcome<void>> connection::stage(std::size_t bytes) noexcept {
    ENSURE(bytes <= staged_.size());
    while (end_ - begin_ < bytes) {
        if (begin_ == end_) begin_ = end_ = 0;
        if (staged_.size() - begin_ < bytes) {
            std::memmove(staged_.data(), staged_.data() + begin_, end_ - begin_);
            end_ -= std::exchange(begin_, 0);
        }
        std::size_t room = staged_.size() - end_;
        // Staged data of a READ must be copied, so read little more than its header.
        if (direct_readers_ != 0)
            room = std::min(room, bytes - (end_ - begin_) + limits::direct_lookahead_bytes);
        const io::io_request<io::bytes_type> wanted{.buffers = std::span(staged_).subspan(end_, room)};
        const auto got = co_await io::co_read(socket_, wanted);
        if (not got) co_return failed(client_error::of_io(step, got.error()));
        if (got.bytes_transferred() == 0) co_return failed(client_error::of_io(step, ECONNRESET));
        end_ += got.bytes_transferred();
        last_received_ = deps_.clock.steady_now();
    }
    co_return outcome<void>{};
}

io::task<outcome<void>> connection::receive_frame() noexcept {
    io::task<outcome<void>> staging_prefix = stage(wire::frame_prefix_bytes);
    if (const auto staged = co_await std::move(staging_prefix); not staged) co_return staged;
    const bytes_view prefix(staged_.data() + begin_, wire::frame_prefix_bytes);
    const auto length = wire::decode_frame_prefix(prefix, frame_bytes_max());
    if (not length) co_return failed(broken_rule("a frame with an invalid length"));
    // A compressed frame may be shorter than its message.
    const std::size_t bytes_min = agreed_.compression.is_on() ? sizeof(le32) : wire::header_bytes;
    if (*length < bytes_min) co_return failed(broken_rule("a frame too short for a message"));

    const std::size_t head_bytes = std::min(framed_read_head_bytes, wire::frame_prefix_bytes + *length);
    io::task<outcome<void>> staging_head = stage(head_bytes);
    if (const auto staged = co_await std::move(staging_head); not staged) co_return staged;
    if (exchange* const reader = direct_reader(*length)) {
        io::task<outcome<void>> receiving = receive_direct(*reader, *length);
        co_return co_await std::move(receiving);
    }

    const std::size_t framed_bytes = wire::frame_prefix_bytes + *length;
    if (framed_bytes <= staged_.size()) {
        io::task<outcome<void>> staging = stage(framed_bytes);
        if (const auto staged = co_await std::move(staging); not staged) co_return staged;
        const mutable_bytes frame(staged_.data() + begin_ + wire::frame_prefix_bytes, *length);
        begin_ += framed_bytes;  // before a waiter resumes; the bytes stay in place
        co_return take_frame(frame);
    }

    pool_buffer memory = memory_.take(*length);
    if (not memory) co_return failed(client_error::of_io(step, ENOMEM));
    const mutable_bytes frame = memory.bytes();
    begin_ += wire::frame_prefix_bytes;
    std::size_t have = std::min(end_ - begin_, *length);
    std::memcpy(frame.data(), staged_.data() + begin_, have);
    begin_ += have;
    while (have != *length) {
        low_water_.expect(*length - have);
        const io::io_request<io::bytes_type> wanted{.buffers = frame.span().subspan(have)};
        const auto got = co_await io::co_read(socket_, wanted);
        if (not got) co_return failed(client_error::of_io(step, got.error()));
        if (got.bytes_transferred() == 0) co_return failed(client_error::of_io(step, ECONNRESET));
        have += got.bytes_transferred();
        last_received_ = deps_.clock.steady_now();
    }
    low_water_.expect(0);
    co_return take_frame(frame);
}

// Returns the request that waits for the READ whose header is staged, if its data can be received
// directly into the caller's memory: a plain reply, alone in its frame, with data from the end of
// the header to the end of the frame.
exchange* connection::direct_reader(std::size_t frame_bytes) noexcept {
    if (direct_readers_ == 0 or frame_bytes < read_head_bytes + limits::direct_read_bytes_min) return nullptr;
    const bytes_view head(staged_.data() + begin_ + wire::frame_prefix_bytes, read_head_bytes);
    const auto header = wire::decode_header(head);
    if (not header or header->command != wire::command::read or header->status != nt_status::success or
        header->next_command_bytes != 0 or not wire::has(header->flags, wire::header_flags::response))
        return nullptr;
    const read_extent data = extent_of(head);
    if (data.structure_size != 17 or data.data_offset != read_head_bytes or
        data.data_length != frame_bytes - read_head_bytes)
        return nullptr;
    exchange* const reader = find(header->message_id);
    if (reader == nullptr or reader->command_ != wire::command::read or reader->is_sealed_ or
        reader->how_.into.size() < data.data_length)
        return nullptr;
    return reader;
}

// Receives the data of a READ whose header has been consumed.
io::task<outcome<void>> connection::receive_data(mutable_bytes data) noexcept {
    const std::size_t data_bytes = data.size();
    std::size_t have = std::min(end_ - begin_, data_bytes);
    std::memcpy(data.data(), staged_.data() + begin_, have);
    begin_ += have;
    while (have != data_bytes) {
        // All staged bytes are consumed. Bytes after the data may be received with them.
        begin_ = end_ = 0;
        low_water_.expect(data_bytes - have);
        std::array<io::buffer, 2> pieces{
            io::buffer(data.data() + have, data_bytes - have),
            io::buffer(staged_.data(), framed_read_head_bytes + limits::direct_lookahead_bytes)};
        const io::io_request<io::buffers_type> wanted{.buffers = pieces};
        const auto got = co_await io::co_read(socket_, wanted);
        if (not got) co_return failed(client_error::of_io(step, got.error()));
        const std::size_t bytes = got.bytes_transferred();
        if (bytes == 0) co_return failed(client_error::of_io(step, ECONNRESET));
        const std::size_t of_data = std::min(bytes, data_bytes - have);
        have += of_data;
        end_ = bytes - of_data;
        last_received_ = deps_.clock.steady_now();
    }
    low_water_.expect(0);
    co_return outcome<void>{};
}

// Discards the data instead. The part that has not arrived is awaited by reading a small part of
// it.
io::task<outcome<void>> connection::discard_data(std::size_t bytes) noexcept {
    std::size_t left = bytes - std::min(end_ - begin_, bytes);
    begin_ += bytes - left;
    while (left != 0) {
        left -= io::discard_received(socket_, left);
        if (left == 0) break;
        begin_ = end_ = 0;
        low_water_.expect(left);
        const std::size_t room = std::min(left, limits::direct_lookahead_bytes);
        const io::io_request<io::bytes_type> wanted{.buffers = std::span(staged_).first(room)};
        const auto got = co_await io::co_read(socket_, wanted);
        if (not got) co_return failed(client_error::of_io(step, got.error()));
        if (got.bytes_transferred() == 0) co_return failed(client_error::of_io(step, ECONNRESET));
        left -= got.bytes_transferred();
        last_received_ = deps_.clock.steady_now();
    }
    low_water_.expect(0);
    co_return outcome<void>{};
}

io::task<outcome<void>> connection::receive_direct(exchange& reader, std::size_t frame_bytes) noexcept {
    std::array<std::byte, read_head_bytes> head;
    std::memcpy(head.data(), staged_.data() + begin_ + wire::frame_prefix_bytes, head.size());
    begin_ += framed_read_head_bytes;
    const std::size_t data_bytes = frame_bytes - read_head_bytes;
    const mutable_bytes data = *reader.how_.into.first(data_bytes);
    const bool is_wanted = not reader.how_.discards;
    io::task<outcome<void>> receiving = is_wanted ? receive_data(data) : discard_data(data_bytes);
    if (const auto received = co_await std::move(receiving); not received) co_return received;
    if (broken_) co_return failed(*broken_);
    const auto header = wire::decode_header(head);
    constexpr std::array<std::byte, 16> no_signature{};
    const std::size_t after_signature = wire::header_signature_offset + no_signature.size();
    const bytes_view all(head);
    const std::array parts{*all.first(wire::header_signature_offset), bytes_view(no_signature),
                           *all.from(after_signature), bytes_view(data)};
    if (is_wanted)
        if (const outcome<void> vouched = authenticate_reply(reader, *header, parts, false); not vouched)
            co_return vouched;
    grant(header->credits);
    answer(reader, {.header = *header, .message = all, .read_bytes = data_bytes});
    serve_credit_waits();
    co_return outcome<void>{};
}

outcome<void> connection::take_frame(mutable_bytes frame) noexcept {
    const auto kind = wire::kind_of_frame(frame);
    if (not kind) return failed(broken_rule("a frame that is not an SMB2 message"));
    bool was_sealed = false;
    bytes_view messages = frame;
    wire::frame_kind inner = *kind;
    if (*kind == wire::frame_kind::encrypted) {
        const auto sealed = wire::decode_transform(frame);
        if (not sealed or not security_.opener or sealed->header.session_id != security_.session_id)
            return failed(broken_rule("an encrypted frame of another session"));
        const mutable_bytes plain(frame.data() + wire::transform_header_bytes, sealed->ciphertext.size());
        const bytes_view ciphertext = sealed->ciphertext;
        const bytes_view header(frame.data(), wire::transform_header_bytes);
        if (not security_.opener->open(header, std::span(&ciphertext, 1), plain))
            return failed(broken_rule("an encrypted frame that is not authentic"));
        messages = plain;
        was_sealed = true;
        inner = wire::kind_of_frame(plain).value_or(wire::frame_kind::smb1);
    }
    if (inner == wire::frame_kind::compressed and agreed_.compression.is_on()) {
        const outcome<pool_buffer> decompressed = decompress(messages);
        if (not decompressed) return failed(decompressed.error());
        return take_messages(decompressed->bytes(), was_sealed);
    }
    if (inner != wire::frame_kind::smb2)
        return failed(broken_rule("a frame of a kind that was not negotiated"));
    return take_messages(messages, was_sealed);
}

// Every violation breaks the connection ([MS-SMB2] 3.2.5.1.1.2).
outcome<pool_buffer> connection::decompress(bytes_view frame) noexcept {
    const std::size_t transfer_bytes_max =
        std::max({agreed_.transact_bytes_max, agreed_.read_bytes_max, agreed_.write_bytes_max});
    const auto bytes = wire::decompressed_bytes(
        frame, agreed_.compression, wire::compression_limits_for(transfer_bytes_max, frame_bytes_max()));
    if (not bytes) return failed(broken_rule("a compressed frame with an invalid header"));
    pool_buffer memory = memory_.take(*bytes);
    if (not memory) return failed(client_error::of_io(step, ENOMEM));
    if (not wire::decompress_message(frame, agreed_.compression, memory.bytes()))
        return failed(broken_rule("a frame that cannot be decompressed"));
    if (wire::kind_of_frame(memory.bytes()) != wire::frame_kind::smb2)
        return failed(broken_rule("a compressed frame that is not an SMB2 message"));
    return memory;
}

outcome<void> connection::take_messages(bytes_view messages, bool was_sealed) noexcept {
    wire::compound_reader reader(messages, limits::messages_per_frame_max);
    while (not reader.done()) {
        const auto message = reader.next();
        if (not message) return failed(broken_rule("a frame with an invalid message"));
        const outcome<void> taken = take_message(*message, was_sealed);
        if (not taken) return taken;
        if (broken_) return failed(*broken_);
    }
    serve_credit_waits();
    return {};
}

outcome<void> connection::take_message(const wire::message_view& message, bool was_sealed) noexcept {
    const wire::header& header = message.header();
    if (not wire::has(header.flags, wire::header_flags::response))
        return failed(broken_rule("a request instead of a reply"));
    if (header.message_id == unasked_message_id) {
        // The client holds no oplocks or leases, so there is nothing to break.
        if (header.command == wire::command::oplock_break) return {};
        if (header.command == wire::command::server_to_client_notification)
            return take_notification(message, was_sealed);
        return failed(broken_rule("an unexpected notification"));
    }
    exchange* const one = find(header.message_id);
    if (one == nullptr) return failed(broken_rule("a reply without a request"));
    if (one->command_ != header.command)
        return failed(broken_rule("a reply with another command than its request"));
    grant(header.credits);
    const bool is_interim =
        header.status == nt_status::pending and wire::has(header.flags, wire::header_flags::async);
    if (is_interim) {
        if (one->async_id_ != 0) return failed(broken_rule("a second interim reply"));
        one->async_id_ = header.async_id | 1U;  // never 0, and only compared with 0
        ++async_in_flight_;
        return {};
    }
    const auto parts = auth::with_zero_signature(message.bytes());
    if (const auto vouched = authenticate_reply(*one, header, parts, was_sealed); not vouched) return vouched;
    if (one->command_ == wire::command::read and not wire::is_error(header.status)) {
        if (const auto placed = place_read_data(*one, message); not placed) return placed;
    }
    answer(*one, {.header = header, .message = message.bytes(), .read_bytes = one->reply_.read_bytes});
    return {};
}

// The server has closed the session. It closes the connection soon, too, and answers no request
// that is in flight, so they fail as if the connection were lost ([MS-SMB2] 3.2.5.19). One that an
// attacker could have sent has no effect.
outcome<void> connection::take_notification(const wire::message_view& message, bool was_sealed) noexcept {
    const wire::header& header = message.header();
    if (agreed_.dialect != wire::dialect::smb_3_1_1 or
        not wire::has(agreed_.capabilities, wire::capabilities::notifications))
        return failed(broken_rule("a notification that was not negotiated"));
    if (not wire::decode_server_notification(message)) return {};  // a type of a later revision
    if (header.session_id != security_.session_id) return {};
    const bool is_signed = wire::has(header.flags, wire::header_flags::signed_message);
    if (not was_sealed and security_.signer) {
        if (not is_signed) return {};
        const auto parts = auth::with_zero_signature(message.bytes());
        const auth::signed_message which{
            .message_id = header.message_id, .sender = auth::message_sender::server, .is_cancel = false};
        if (not security_.signer->verify(parts, which, header.signature))
            return failed(broken_rule("a notification with an invalid signature"));
    }
    return failed(client_error::of_io("session closed by the server", ECONNRESET));
}

// Authenticates a reply: it must be protected as its request was ([MS-SMB2] 3.2.5.1.1, 3.2.5.1.3).
outcome<void> connection::authenticate_reply(const exchange& one, const wire::header& header,
                                             std::span<const bytes_view> parts, bool was_sealed) noexcept {
    if (was_sealed) return {};
    if (one.is_sealed_) return failed(broken_rule("a plain reply to an encrypted request"));
    const bool is_signed = wire::has(header.flags, wire::header_flags::signed_message);
    // The final reply of a session setup is signed with a key that the setup derives:
    // session::verify_last() verifies it.
    const bool ends_set_up =
        header.command == wire::command::session_setup and header.status == nt_status::success;
    if (not one.is_signed_ or ends_set_up) return {};
    if (not is_signed) return failed(broken_rule("an unsigned reply to a signed request"));
    const bool is_right = security_.signer->verify(
        parts, {.message_id = header.message_id, .sender = auth::message_sender::server, .is_cancel = false},
        header.signature);
    if (not is_right) return failed(broken_rule("a reply with an invalid signature"));
    return {};
}

outcome<void> connection::place_read_data(exchange& reader, const wire::message_view& message) noexcept {
    const auto said = wire::decode_read_reply(message);
    if (not said) return failed(broken_rule("invalid READ reply"));
    if (said->data.size() > reader.how_.into.size())
        return failed(broken_rule("a READ reply with more data than requested"));
    if (not said->data.empty()) std::memcpy(reader.how_.into.data(), said->data.data(), said->data.size());
    reader.reply_.read_bytes = said->data.size();
    return {};
}

// Ends the wait of a request, if the kernel no longer uses its memory.
void connection::answer(exchange& one, const reply& with) noexcept {
    bucket_of(one.message_id_).erase(one);
    --in_flight_;
    charged_ -= charge_of(one.how_.payload_bytes);
    if (one.async_id_ != 0) --async_in_flight_;
    if (one.how_.into.size() >= limits::direct_read_bytes_min) --direct_readers_;
    one.reply_ = with;
    one.is_answered_ = true;
    if (one.is_sent_) {
        one.resume_waiter(0);
        return;
    }
    // The reply arrived before the completion of the send. Its bytes here are reused, so copy them.
    one.kept_reply_ = memory_.take(with.message.size());
    if (not one.kept_reply_) {
        break_soon(client_error::of_io(step, ENOMEM));
        return;
    }
    std::memcpy(one.kept_reply_.bytes().data(), with.message.data(), with.message.size());
    one.reply_.message = bytes_view(one.kept_reply_.bytes());
}

}  // namespace sluice::smb::client
