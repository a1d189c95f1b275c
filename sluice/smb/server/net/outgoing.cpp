// Replies become frames: header, credits, padding, signature, encryption ([MS-SMB2] 3.3.4.1).

#include <algorithm>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/error_response.hpp"
#include "sluice/smb/wire/message/server_notification.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

constexpr std::size_t error_body_bytes_max = 32;  // without data
constexpr std::size_t read_reply_body_max = 32;   // the same

// The message within a reply's buffer: behind the room for a frame's length.
[[nodiscard]] mutable_bytes message_of(pool_buffer& head) noexcept {
    ENSURE(head.size() >= wire::frame_prefix_bytes + wire::header_bytes, "a reply has room for its header");
    return *mutable_bytes(head.bytes()).from(wire::frame_prefix_bytes);
}

void put_header(pool_buffer& head, const wire::header& header) noexcept {
    byte_writer writer(message_of(head));
    encode(writer, header);
}

// Returns a header with the fields that every reply copies from the request ([MS-SMB2] 3.3.4.1).
[[nodiscard]] wire::header reply_header(const request& r, nt_status status) noexcept {
    wire::header header;
    header.credit_charge = r.header().credit_charge;
    header.status = status;
    header.command = r.header().command;
    header.flags = wire::header_flags::response |
                   (r.header().flags & (wire::header_flags::related | wire::header_flags::priority_mask));
    header.message_id = r.header().message_id;
    header.session_id = r.session != nullptr ? r.session->id : r.header().session_id;
    if (r.async_id != 0) {
        header.flags |= wire::header_flags::async;
        header.async_id = r.async_id;
    } else {
        header.tree_id = r.tree != nullptr ? r.tree->id : r.header().tree_id;
    }
    return header;
}

constexpr std::array<std::byte, 64U << 10> zeros{};

// Returns the parts of a reply in the order of sending: header and body, payload, and padding to a
// multiple of eight if others may follow.
[[nodiscard]] std::array<bytes_view, 3> parts_of(const finished_reply& one, bool is_padded) noexcept {
    const std::size_t padding = is_padded ? one.padding_bytes() : 0;
    return {*bytes_view(one.head.bytes()).from(wire::frame_prefix_bytes), one.payload.bytes(),
            *bytes_view(zeros).first(padding)};
}

void sign(finished_reply& one, bool is_padded) noexcept {
    const mutable_bytes message = message_of(one.head);
    std::memset(message.data() + wire::header_signature_offset, 0, sizeof(wire::message_signature));
    const std::array<bytes_view, 3> parts = parts_of(one, is_padded);
    const auth::message_signature made = one.signed_by->with->sign(parts, std::move(one.signed_by->once));
    std::memcpy(message.data() + wire::header_signature_offset, made.data(), made.size());
}

// For replies that cannot be signed, as this connection has no key: the session is unknown, or the
// request was refused before the session was found. Windows and Samba then return the flag and the
// signature of the request, and clients that require signatures accept some errors only in this
// form. It is the client's own signature, so that it says nothing new. A request with a wrong
// signature does not get it back.
void echo_signature(const request& r, nt_status status, wire::header& header) noexcept {
    const bool has_key = r.channel != nullptr and r.channel->signer != nullptr;
    const bool is_meant = not has_key and wire::has(r.header().flags, wire::header_flags::signed_message) and
                          wire::is_error(status) and status != nt_status::more_processing_required;
    if (not is_meant) return;
    header.flags |= wire::header_flags::signed_message;
    header.signature = r.header().signature;
}

}  // namespace

std::uint16_t connection::grant_credits(const request& r) noexcept {
    ENSURE(loop().is_owner(), "credits are granted on the home loop");
    const std::uint16_t outstanding_max =
        admitted.has_had_session ? limits::credits_max : limits::credits_before_session_max;
    return credits_.grant(r.header().credits, outstanding_max);
}

finished_reply connection::finish(request& r, nt_status status) noexcept {
    reply& answer = r.answer;
    const bool keeps_body = answer.has_body() and answer.finish();
    if (not keeps_body) {
        byte_writer* const writer = answer.begin(error_body_bytes_max + r.error_data.size());
        ENSURE(writer != nullptr, "out of memory for an error reply");
        wire::error_reply why{.data = r.error_data};
        if (not r.error_data.empty() and agreed.is_at_least(wire::dialect::smb_3_1_1))
            why.id = wire::error_id::none;
        encode(*writer, why);
        ENSURE(answer.finish(), "an error reply has room for its body");
    }
    wire::header header = reply_header(r, status);
    // The interim reply has granted already.
    header.credits = r.async_id != 0 ? std::uint16_t{0} : grant_credits(r);
    finished_reply finished{.head = std::move(answer.head()),
                            .payload = std::move(answer.payload()),
                            .signed_by = {},
                            .hashed_by = {},
                            .grants = std::exchange(r.grants, std::nullopt),
                            .compressed_for = std::move(r.compressed_for)};
    if (r.encrypted_by == nullptr) {
        finished.signed_by = std::exchange(r.signs_reply_, std::nullopt);
        if (finished.signed_by)
            header.flags |= wire::header_flags::signed_message;
        else
            echo_signature(r, status, header);
    }
    put_header(finished.head, header);
    extend_preauth(r, status, finished);
    return finished;
}

// From 3.1.1 on, the messages before a session has keys go into the keys; the last reply of a
// session set-up is signed with them instead ([MS-SMB2] 3.3.5.4, 3.3.5.5).
void connection::extend_preauth(request& r, nt_status status, finished_reply& finished) noexcept {
    if (r.header().command == wire::command::negotiate)
        preauth.add(message_of(finished.head));
    else if (r.header().command == wire::command::session_setup and
             status == nt_status::more_processing_required)
        finished.hashed_by = r.channel;
}

void connection::add(reply_batch& replies, finished_reply&& one, channel* encrypted_by) noexcept {
    if (not replies.empty() and not replies.has_room_for(one)) send(replies, encrypted_by);
    ENSURE(replies.has_room_for(one), "a reply fits into a frame of its own");
    replies.add(std::move(one));
}

void connection::send(reply_batch& replies, channel* encrypted_by) noexcept {
    send(replies.ready(), encrypted_by);
    replies.clear();
}

void connection::send(std::span<finished_reply> replies, channel* encrypted_by) noexcept {
    ENSURE(not replies.empty(), "a frame has a reply");
    // The last as well: Windows does, and is counted on.
    const bool are_padded = replies.size() > 1;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i != replies.size(); ++i) {
        finished_reply& one = replies[i];
        const std::size_t message_bytes = are_padded ? one.padded_bytes() : one.message_bytes();
        const bool is_last = i + 1 == replies.size();
        const le32 next_command(is_last ? 0 : static_cast<std::uint32_t>(message_bytes));
        std::memcpy(message_of(one.head).data() + wire::header_next_command_offset, &next_command,
                    sizeof next_command);
        if (one.signed_by) sign(one, are_padded);
        if (one.hashed_by != nullptr) one.hashed_by->preauth.add(message_of(one.head));
        bytes += message_bytes;
    }
    ENSURE(bytes <= wire::frame_bytes_max, "the length of a frame can be said in its prefix");
    const auto is_compressed = [](const finished_reply& one) { return one.compressed_for != nullptr; };
    if (std::ranges::any_of(replies, is_compressed) and send_compressed(replies, bytes, encrypted_by)) return;
    if (encrypted_by != nullptr) {
        send_encrypted(replies, *encrypted_by);
        return;
    }
    byte_writer prefix(replies.front().head.bytes());
    wire::encode_frame_prefix(prefix, bytes);
    for (std::size_t i = 0; i != replies.size(); ++i) {
        const std::size_t padding = are_padded ? replies[i].padding_bytes() : 0;
        writer_.put({.memory = std::move(replies[i].head), .skipped = i == 0 ? 0 : wire::frame_prefix_bytes});
        reply_payload& payload = replies[i].payload;
        if (payload.is_file())
            put_pieces(payload.pieces());
        else if (payload)
            writer_.put({.memory = std::move(payload.memory())});
        if (padding != 0) writer_.put({.constant = std::span(zeros).first(padding)});
    }
}

// One transfer for each run: the kernel takes them one after the other.
void connection::put_pieces(const reply_payload::file_pieces& what) noexcept {
    for (const vfs::host_run& run : what.runs) {
        if (run.place) {
            writer_.put({.range = {.file = what.file,
                                   .kept = what.kept,
                                   .offset = *run.place,
                                   .length = static_cast<std::size_t>(run.length)}});
            continue;
        }
        for (std::uint64_t left = run.length; left != 0;) {
            const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, zeros.size()));
            writer_.put({.constant = std::span(zeros).first(part)});
            left -= part;
        }
    }
}

void connection::send_encrypted(std::span<const finished_reply> replies, channel& by) noexcept {
    ENSURE(loop().is_owner(), "a channel seals on the home loop of its connection");
    std::vector<bytes_view>& parts = parts_to_encrypt_;
    parts.clear();
    std::size_t bytes = 0;
    for (const finished_reply& one : replies) {
        for (const bytes_view part : parts_of(one, replies.size() > 1)) {
            if (part.empty()) continue;
            parts.push_back(part);
            bytes += part.size();
        }
    }
    encrypt_parts(bytes, by);
}

// Encrypts the parts in `parts_to_encrypt_`, of `bytes` in all.
void connection::encrypt_parts(std::size_t bytes, channel& by) noexcept {
    const std::vector<bytes_view>& parts = parts_to_encrypt_;
    const std::size_t sealed_bytes = wire::transform_header_bytes + bytes;
    pool_buffer memory = buffers().take(wire::frame_prefix_bytes + sealed_bytes);
    if (not memory) {
        close("out of memory for a reply");
        return;
    }
    byte_writer prefix(memory.bytes());
    wire::encode_frame_prefix(prefix, sealed_bytes);
    const mutable_bytes sealed = *mutable_bytes(memory.bytes()).from(wire::frame_prefix_bytes);
    if (not by.sealer or not by.sealer->seal(by.session->id, parts, sealed)) {
        close("the session's encryption key is used up");
        return;
    }
    writer_.put({.memory = std::move(memory)});
}

// Sends the signed replies of a frame compressed, all of them or none. Returns false if that saves
// too little, and remembers it, so that the next READs of the file do not try again.
bool connection::send_compressed(std::span<finished_reply> replies, std::size_t bytes,
                                 channel* encrypted_by) noexcept {
    ENSURE(agreed.compression.is_on(), "a reply is compressed after an agreement");
    // A compound could be much longer than what a loop may spend time on, and a client accepts.
    if (bytes > limits::compressed_read_bytes_max + wire::header_bytes + read_reply_body_max) return false;
    wire::uncompressed_message message;
    pool_buffer joined;
    if (replies.size() == 1) {
        message = {.head = message_of(replies[0].head), .data = replies[0].payload.bytes()};
    } else {
        joined = buffers().take(bytes);
        if (not joined) return false;
        byte_writer writer(joined.bytes());
        for (const finished_reply& one : replies)
            for (const bytes_view part : parts_of(one, true))
                writer.put_bytes(part);
        const bytes_view all = *writer.finish();
        message = {.head = *all.first(wire::header_bytes), .data = *all.from(wire::header_bytes)};
    }
    // Less saves less time than it takes, except on the slowest links.
    const std::size_t useful = bytes - bytes / limits::compression_saves_min;
    pool_buffer frame = buffers().take(wire::frame_prefix_bytes + useful);
    if (not frame) return false;
    const mutable_bytes room = *mutable_bytes(frame.bytes()).from(wire::frame_prefix_bytes);
    const auto size =
        wire::compress_message(message, agreed.compression, room, home_.data.compression_memory());
    if (not size) {
        for (const finished_reply& one : replies)
            if (one.compressed_for != nullptr) one.compressed_for->skip_compression();
        return false;
    }
    if (encrypted_by != nullptr) {
        parts_to_encrypt_.assign(1, *room.first(*size));
        encrypt_parts(*size, *encrypted_by);
        return true;
    }
    byte_writer prefix(frame.bytes());
    wire::encode_frame_prefix(prefix, *size);
    frame.shrink(wire::frame_prefix_bytes + *size);
    // A short frame does not keep a long buffer while its client does not read it.
    if (pool_buffer exact = *size < useful / 2 ? buffers().take(frame.size()) : pool_buffer()) {
        std::memcpy(exact.data(), frame.data(), frame.size());
        frame = std::move(exact);
    }
    writer_.put({.memory = std::move(frame)});
    return true;
}

bool connection::count_pending(request& r) noexcept {
    ENSURE(loop().is_owner(), "a request is counted on its loop");
    if (r.is_pending) return true;
    // One that waits keeps its frame: those of a connection must not stop it from reading the
    // requests that end them. Reserved is up to twice as much, and may_receive() leaves it a
    // quarter of all at least.
    const std::size_t bytes_max =
        std::min(limits::pending_bytes_per_connection_max, home_.buffer_bytes_max / 8);
    const bool has_room = pending_bytes_ == 0 or pending_bytes_ + r.frame_bytes <= bytes_max;
    if (not has_room or pending_count_.value() >= limits::pending_requests_per_connection_max) {
        host_.rejections.add(limit::pending_requests_per_connection, admitted.from.text());
        return false;
    }
    if (r.session != nullptr) {
        r.counted = host_.quotas.take(r.session->admitted.client, limit::pending_requests);
        if (r.counted.amount() == 0) return false;
    }
    pending_count_.set(pending_count_.value() + 1);
    pending_bytes_ += r.frame_bytes;
    r.is_pending = true;
    return true;
}

void connection::send_earlier_replies(request& r) noexcept {
    ENSURE(loop().is_owner(), "replies are sent on the home loop");
    const auto grants = [](const finished_reply& one) { return one.grants.has_value(); };
    if (std::ranges::any_of(r.replies_before->ready(), grants)) send(*r.replies_before, r.encrypted_by.get());
}

bool connection::send_interim(request& r) noexcept {
    reply interim(buffers());
    byte_writer* const writer = interim.begin(error_body_bytes_max);
    if (writer == nullptr) return false;
    encode(*writer, wire::error_reply{});
    ENSURE(interim.finish(), "an interim reply has room for its body");
    ENSURE(r.is_pending and r.async_id == 0, "a request gets an interim reply once, after it was counted");

    r.async_id = next_async_id_++;
    wire::header header = reply_header(r, nt_status::pending);
    header.credits = grant_credits(r);
    finished_reply finished{
        .head = std::move(interim.head()), .payload = {}, .signed_by = {}, .hashed_by = {}};
    // Never signed ([MS-SMB2] 3.3.4.2): the last reply has the same message id, and
    // with AES-GMAC the nonce.
    put_header(finished.head, header);
    // Earlier replies of the same frame must not wait as long.
    add(*r.replies_before, std::move(finished), r.encrypted_by.get());
    send(*r.replies_before, r.encrypted_by.get());
    return true;
}

void connection::send_notification(channel* encrypted_by, wire::command code, reply& message) noexcept {
    ENSURE(loop().is_owner(), "a notification is sent on the home loop");
    if (is_closing() or not message.finish()) return;
    wire::header header;
    header.command = code;
    header.flags = wire::header_flags::response;
    // Neither message nor session nor tree: this is not a reply to a request ([MS-SMB2] 3.3.4.6).
    header.message_id = ~std::uint64_t{0};
    send_unsolicited(header, message, encrypted_by);
}

void connection::notify_session_closed(std::shared_ptr<channel> via) noexcept {
    const connection_handle& handle = *via->connection;
    handle.at_home([of = std::move(via)](replier* on) noexcept {
        if (on != nullptr) static_cast<connection&>(*on).send_session_closed(*of);
    });
}

void connection::send_session_closed(channel& of) noexcept {
    ENSURE(loop().is_owner(), "a notification is sent on the home loop");
    if (is_closing() or not of.is_established()) return;
    reply message(buffers());
    byte_writer* const writer = message.begin(notification_bytes_max);
    if (writer == nullptr) return;
    encode(*writer, wire::session_closed_notification{});
    ENSURE(message.finish(), "a notification has room for its body");
    wire::header header;
    header.command = wire::command::server_to_client_notification;
    header.flags = wire::header_flags::response;
    header.message_id = auth::used_message_ids::unsolicited_id;
    header.session_id = of.session->id;
    finished_reply finished{
        .head = std::move(message.head()), .payload = {}, .signed_by = {}, .hashed_by = {}};
    const bool is_encrypted = of.session->requires_encryption and of.sealer.has_value();
    if (not is_encrypted and of.session->requires_signing and of.signer != nullptr) {
        auto once = of.signer->permit(
            {.message_id = header.message_id, .sender = auth::message_sender::server, .is_cancel = false});
        if (not once) return;
        header.flags |= wire::header_flags::signed_message;
        finished.signed_by.emplace(of.signer, *std::move(once));
    }
    put_header(finished.head, header);
    send(std::span(&finished, 1), is_encrypted ? &of : nullptr);
}

// A message that was just queued counts as a pending break until the writer, which it has woken,
// has had its turn: an item that is posted now runs after the writer.
void connection::end_when_sent(pending_break counted) noexcept {
    ENSURE(loop().is_owner(), "a break is sent on the home loop");
    const auto posted = loop().post([counted = std::move(counted)]() noexcept {});
    ENSURE(posted.has_value(), "out of memory to report a sent break");
}

void connection::send_unsolicited(const wire::header& header, reply& message,
                                  channel* encrypted_by) noexcept {
    finished_reply finished{
        .head = std::move(message.head()), .payload = {}, .signed_by = {}, .hashed_by = {}};
    put_header(finished.head, header);
    send(std::span(&finished, 1), encrypted_by);
}

}  // namespace sluice::smb::server
