// Encodes requests as frames: header, credits, signature, encryption ([MS-SMB2] 3.2.4.1).

#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/client/connection.hpp"
#include "sluice/smb/wire/message/frame.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::client {

namespace {

constexpr std::uint32_t credits_per_request_max = 8192;

// The awaitable of the sender while there is nothing to send.
struct nothing_to_send {
    std::coroutine_handle<>& waiter;
    [[nodiscard]] static bool await_ready() noexcept { return false; }
    void await_suspend(std::coroutine_handle<> who) const noexcept { waiter = who; }
    static void await_resume() noexcept {}
};

}  // namespace

wire::header connection::header_for(exchange& one) noexcept {
    const std::uint32_t charge = charge_of(one.how_.payload_bytes);
    charged_ += charge;
    const std::uint32_t had = credits_ + charged_;
    const std::uint32_t more = options_.credits_wanted > had ? options_.credits_wanted - had : 0;
    wire::header header;
    header.credit_charge = agreed_.has_large_mtu() ? static_cast<std::uint16_t>(charge) : std::uint16_t{0};
    header.command = one.command_;
    header.credits = static_cast<std::uint16_t>(std::min(charge + more, credits_per_request_max));
    header.message_id = one.how_.uses_skipped ? skipped_from_ : next_message_id_;
    header.tree_id = one.how_.tree_id;
    header.session_id = security_.session_id;
    if (one.how_.is_replay) header.flags |= wire::header_flags::replay;
    if (agreed_.dialect >= wire::dialect::smb_3_0) header.channel_sequence = one.how_.channel_sequence;
    if (one.is_signed_) header.flags |= wire::header_flags::signed_message;
    if (one.how_.uses_skipped)
        skipped_ = 0;
    else
        next_message_id_ += charge;
    return header;
}

// All properties of a request are fixed here, so that message ids are sent in order.
void connection::launch(exchange& one) noexcept {
    one.is_sealed_ = security_.sealer.has_value() and (security_.seals_all or one.how_.must_seal);
    one.is_signed_ =
        not one.is_sealed_ and security_.signer.has_value() and (security_.signs_all or one.how_.must_sign);
    const wire::header header = header_for(one);
    one.message_id_ = header.message_id;
    const mutable_bytes memory = one.memory_.bytes();
    byte_writer prefix(memory);
    wire::encode_frame_prefix(prefix, one.head_bytes_ - wire::frame_prefix_bytes + one.payload_.size());
    byte_writer writer(*memory.from(wire::frame_prefix_bytes));
    encode(writer, header);
    const bool has_signature = not one.is_signed_ or sign(one);
    if (hashes_next_ != nullptr) {  // as it is sent: with its signature
        const bytes_view message = *bytes_view(memory).slice(
            {.offset = wire::frame_prefix_bytes, .length = one.head_bytes_ - wire::frame_prefix_bytes});
        std::exchange(hashes_next_, nullptr)->add(message);
    }
    bucket_of(one.message_id_).push_back(one);
    ++in_flight_;
    if (one.how_.into.size() >= limits::direct_read_bytes_min) ++direct_readers_;
    if (not has_signature) {
        break_soon(client_error::of_protocol(one.how_.step, "no message ids are left for the session key"));
        return;
    }
    if (agreed_.compression.is_on() and one.command_ == wire::command::write) compress(one);
    if (one.is_sealed_ and not seal(one)) {
        break_soon(client_error::of_io(one.how_.step, ENOMEM));
        return;
    }
    outbox_.push_back(one);
    post_deferred_work();
}

// Returns false if the key has signed a message with that id.
bool connection::sign(exchange& one) noexcept {
    const mutable_bytes message = *mutable_bytes(one.memory_.bytes())
                                       .slice({.offset = wire::frame_prefix_bytes,
                                               .length = one.head_bytes_ - wire::frame_prefix_bytes});
    const std::array parts{bytes_view(message), one.payload_};  // the signature field is still zero
    const auto signature =
        security_.signer->sign(parts, {.message_id = one.message_id_,
                                       .sender = auth::message_sender::client,
                                       .is_cancel = one.command_ == wire::command::cancel,
                                       .ids = static_cast<std::uint16_t>(charge_of(one.how_.payload_bytes))});
    if (not signature) return false;
    std::ranges::copy(*signature, message.begin() + wire::header_signature_offset);
    return true;
}

// Compresses the data of a WRITE, after its signature was made, if that saves enough. Then the
// request consists of its own memory only. Data that did not shrink, such as those of an archive,
// are probably followed by others.
void connection::compress(exchange& one) noexcept {
    if (one.payload_.size() < limits::compressed_write_bytes_min) return;
    if (compression_skips_ != 0) {
        --compression_skips_;
        return;
    }
    if (compression_memory_ == nullptr) compression_memory_ = std::make_unique<wire::compression_work_area>();
    const bytes_view head = *bytes_view(one.memory_.bytes())
                                 .slice({.offset = wire::frame_prefix_bytes,
                                         .length = one.head_bytes_ - wire::frame_prefix_bytes});
    const std::size_t message_bytes = head.size() + one.payload_.size();
    const std::size_t useful = message_bytes - message_bytes / limits::compression_saves_min;
    pool_buffer memory = memory_.take(wire::frame_prefix_bytes + useful);
    if (not memory) return;
    const mutable_bytes room = *mutable_bytes(memory.bytes()).from(wire::frame_prefix_bytes);
    const auto size = wire::compress_message({.head = head, .data = one.payload_}, agreed_.compression, room,
                                             *compression_memory_);
    if (not size) {
        compression_skips_ = limits::compression_skips;
        return;
    }
    ENSURE(*size < message_bytes, "a compressed message is shorter");
    byte_writer prefix(memory.bytes());
    wire::encode_frame_prefix(prefix, *size);
    one.memory_ = std::move(memory);
    one.head_bytes_ = wire::frame_prefix_bytes + *size;
    one.payload_ = {};
}

// Encrypts head and payload into the request's own memory.
bool connection::seal(exchange& one) noexcept {
    const std::size_t message_bytes = one.head_bytes_ - wire::frame_prefix_bytes + one.payload_.size();
    const std::size_t sealed_bytes = wire::transform_header_bytes + message_bytes;
    pool_buffer memory = memory_.take(wire::frame_prefix_bytes + sealed_bytes);
    if (not memory) return false;
    byte_writer prefix(memory.bytes());
    wire::encode_frame_prefix(prefix, sealed_bytes);
    const mutable_bytes sealed =
        *mutable_bytes(memory.bytes()).slice({.offset = wire::frame_prefix_bytes, .length = sealed_bytes});
    const bytes_view head = *bytes_view(one.memory_.bytes())
                                 .slice({.offset = wire::frame_prefix_bytes,
                                         .length = one.head_bytes_ - wire::frame_prefix_bytes});
    const std::array both{head, one.payload_};
    const std::span<const bytes_view> parts(both.data(), one.payload_.empty() ? 1 : 2);
    if (not security_.sealer->seal(security_.session_id, parts, sealed)) return false;
    one.memory_ = std::move(memory);
    one.head_bytes_ = wire::frame_prefix_bytes + sealed_bytes;
    one.payload_ = {};
    return true;
}

io::task<void> connection::send_all() noexcept {
    std::array<io::const_buffer, limits::pieces_per_write_max> pieces;
    while (not broken_) {
        if (outbox_.empty()) {
            co_await nothing_to_send{idle_sender_};
            continue;
        }
        std::size_t count = 0;
        std::size_t bytes = 0;
        while (not outbox_.empty() and count + 2 <= pieces.size() and bytes < limits::bytes_per_write_max) {
            exchange& one = *outbox_.pop_front();
            sending_.push_back(one);
            pieces[count++] = io::const_buffer(one.memory_.bytes().data(), one.head_bytes_);
            if (not one.payload_.empty()) pieces[count++] = io::const_buffer(one.payload_.span());
            bytes += one.head_bytes_ + one.payload_.size();
        }
        const io::io_request<io::const_buffers_type> all{.buffers = std::span(pieces).first(count)};
        const auto sent = co_await io::co_write(socket_, all);
        if (not sent or sent.bytes_transferred() != bytes) {
            break_soon(client_error::of_io("send", sent ? EPIPE : sent.error().code()));
            break;
        }
        complete_sent();
    }
    if (--running_ == 0) finish();
}

// Completes requests whose memory the kernel no longer uses. Some may have been answered earlier.
void connection::complete_sent() noexcept {
    intrusive_list<exchange, &exchange::send_link_> sent = std::move(sending_);
    while (exchange* const one = sent.pop_front()) {
        one->is_sent_ = true;
        if (one->is_answered_) one->resume_waiter(0);
    }
}

}  // namespace sluice::smb::client
