// The content of a frame, and the checks of it ([MS-SMB2] 3.3.5.2).

#include <algorithm>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/request_signature.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/smb1_negotiate.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::smb::server {

using wire::nt_status;

io::task<void> connection::serve_frame(pool_buffer frame) noexcept {
    ENSURE(loop().is_owner(), "a frame is served on the home loop of its connection");
    auto kind = wire::kind_of_frame(frame.bytes());
    if (not kind) {
        close("not an SMB2 message");
        co_return;
    }
    if (*kind == wire::frame_kind::smb1) {
        answer_smb1(frame.bytes());
        co_return;
    }
    std::shared_ptr<channel> encrypted_by;
    bytes_view messages = frame.bytes();
    if (*kind == wire::frame_kind::encrypted) {
        const std::optional<bytes_view> opened = decrypt(frame, encrypted_by);
        if (not opened) {
            close("cannot decrypt a message with any session of this connection");
            co_return;
        }
        messages = *opened;
        kind = wire::kind_of_frame(messages);
    }
    if (*kind == wire::frame_kind::compressed) {
        pool_buffer message = decompress(messages);
        if (not message) {
            close("cannot decompress a message");
            co_return;
        }
        frame = std::move(message);
        messages = frame.bytes();
    }
    if (not admit(messages)) co_return;
    co_await serve_messages(messages, std::move(encrypted_by));
}

std::optional<bytes_view> connection::decrypt(pool_buffer& frame, std::shared_ptr<channel>& by) noexcept {
    const auto sealed = wire::decode_transform(frame.bytes());
    if (not sealed) return std::nullopt;
    by = find_channel(sealed->header.session_id);
    if (by == nullptr or not by->opener) return std::nullopt;
    const bytes_view header(frame.data(), wire::transform_header_bytes);
    const mutable_bytes plain(frame.data() + wire::transform_header_bytes, sealed->ciphertext.size());
    const bytes_view ciphertext = sealed->ciphertext;
    if (not by->opener->open(header, std::span(&ciphertext, 1), plain)) return std::nullopt;
    // One transform in another would have the same bytes opened twice.
    const auto inner = wire::kind_of_frame(plain);
    if (not inner) return std::nullopt;
    if (*inner != wire::frame_kind::smb2 and *inner != wire::frame_kind::compressed) return std::nullopt;
    return plain;
}

// Every failure ends the connection ([MS-SMB2] 3.3.5.2.1.2). The memory is reserved after the
// announced size was compared with the limits, and counts for the connection like that of a frame.
pool_buffer connection::decompress(bytes_view compressed) noexcept {
    ENSURE(loop().is_owner(), "a frame is decompressed on the home loop of its connection");
    const std::size_t frame_max =
        admitted.has_had_session ? limits::frame_bytes_max : limits::frame_bytes_max_before_session;
    const auto bytes = wire::decompressed_bytes(
        compressed, agreed.compression, wire::compression_limits_for(limits::transfer_bytes_max, frame_max));
    if (not bytes) return {};
    ENSURE(*bytes <= frame_max, "a decompressed message is not longer than a frame may be");
    decompressed_since_pause_ += *bytes;
    pool_buffer message = buffers().take(*bytes);
    if (not message or not wire::decompress_message(compressed, agreed.compression, message.bytes()))
        return {};
    // Neither compressed again, nor encrypted.
    const auto inner = wire::kind_of_frame(message.bytes());
    if (not inner or *inner != wire::frame_kind::smb2) return {};
    return message;
}

// Checks every message of the frame before it serves any: their ids are used up in the order of
// arrival, and a frame that cannot be parsed has no effect at all.
bool connection::admit(bytes_view messages) noexcept {
    if (not wire::count_messages(messages, limits::messages_per_compound_max)) {
        close("malformed compound request");
        return false;
    }
    wire::compound_reader reader(messages, limits::messages_per_compound_max);
    while (not reader.done()) {
        const auto message = reader.next();
        const wire::header& header = message->header();
        if (wire::has(header.flags, wire::header_flags::response)) {
            close("response received instead of a request");
            return false;
        }
        if (header.command == wire::command::cancel) continue;
        if (not agreed.is_done() and header.command != wire::command::negotiate) {
            close("request received before NEGOTIATE");
            return false;
        }
        const bool counts_charge = wire::has(agreed.capabilities, wire::capabilities::large_mtu);
        if (not credits_.use(header.message_id, counts_charge ? header.credit_charge : std::uint16_t{1})) {
            close("message ID not granted, or already used");
            return false;
        }
    }
    return true;
}

io::task<void> connection::serve_messages(bytes_view messages,
                                          std::shared_ptr<channel> encrypted_by) noexcept {
    compound_state compound;
    reply_batch replies(std::move(spare_replies_));
    wire::compound_reader reader(messages, limits::messages_per_compound_max);
    bool is_first = true;
    while (not reader.done()) {
        const auto message = reader.next();
        request r(*this, *this, *message, compound);
        r.is_last_of_frame = reader.done();
        r.frame_bytes = messages.size();
        r.encrypted_by = encrypted_by;
        r.is_related = wire::has(r.header().flags, wire::header_flags::related);
        r.replies_before = &replies;
        if (not r.is_related) compound = {};
        if (r.header().command == wire::command::cancel) {
            serve_cancel(r);
            continue;
        }
        // Also if it is refused before it is carried out: requests that are related to it must not
        // be for the file of another CREATE.
        if (r.header().command == wire::command::create) compound.file.reset();
        nt_status status = nt_status::invalid_parameter;
        // Else nothing to be related to.
        if (not(is_first and r.is_related)) status = co_await serve(r);
        is_first = false;
        compound.status = status;
        const bool has_failed = wire::is_error(status) and status != nt_status::more_processing_required;
        counters.served(r.header().command, has_failed);
        if (has_failed)
            host_.log().write(event_severity::detail, "request failed",
                              {{"peer", peer_text_},
                               {"command", wire::name_of(r.header().command)},
                               {"status", wire::name_of(status)}});
        add(replies, finish(r, status), encrypted_by.get());
    }
    if (not replies.empty()) send(replies, encrypted_by.get());
    spare_replies_ = std::move(replies).room();
}

io::task<nt_status> connection::serve(request& r) noexcept {
    loop_activity::begin(loop_work{.command = r.header().command});
    if (undelivered_at_) [[unlikely]]
        check_undelivered();
    const nt_status refused = authorise(r);
    if (refused != nt_status::success) co_return refused;
    ENSURE(r.session == nullptr or r.channel->session == r.session,
           "a request came by a channel of its session");
    if (r.replies_before->bytes_of_all() > limits::reply_bytes_per_frame_max)
        co_return nt_status::insufficient_resources;
    const command_rule* const rule = host_.functions().rule_of(r.header().command);
    ENSURE(not rule->needs_session or r.session != nullptr, "a command that needs a session has one");
    ENSURE(not rule->needs_tree or r.tree != nullptr, "a command that needs a tree has one");
    if (r.tree != nullptr)
        loop_activity::begin(loop_work{.command = r.header().command, .domain = r.tree->target->domain()});
    const nt_status status = co_await rule->serve(r);
    if (host_.breaks.any()) {
        io::task<void> breaks_sent = host_.breaks.none_left(loop());
        co_await std::move(breaks_sent);
    }
    if (r.stale_status()) co_return *r.stale_status();
    // A path beyond a mount that the command does not look for there.
    if (status == nt_status::retry) co_return nt_status::not_same_device;
    // A request related to an open that was never created fails as its CREATE did ([MS-SMB2]
    // 3.3.5.2.7.2).
    if (status == nt_status::file_closed and r.is_related and not r.compound().file and
        wire::is_error(r.compound().status))
        co_return r.compound().status;
    co_return status;
}

nt_status connection::authorise(request& r) noexcept {
    ENSURE(loop().is_owner(), "a request is authorised on its loop");
    const command_rule* const rule = host_.functions().rule_of(r.header().command);
    if (rule == nullptr) return nt_status::invalid_parameter;
    nt_status status = find_session(r);
    if (r.session == nullptr and r.encrypted_by == nullptr and r.header().command != wire::command::negotiate)
        find_signer(r);
    // Commands that need no session accept a message without one, but never a wrong signature.
    if (status != nt_status::success and (rule->needs_session or r.session != nullptr)) return status;
    if (r.session != nullptr) {
        status = check_signature(r);
        if (status != nt_status::success) return status;
        const session::phase now = r.session->state();
        if (r.channel->has_ended() or now == session::phase::gone) return nt_status::user_session_deleted;
        if (now == session::phase::expired and rule->needs_session and not rule->allowed_when_expired)
            return nt_status::network_session_expired;
    }
    return rule->needs_tree ? find_tree(r) : nt_status::success;
}

nt_status connection::find_session(request& r) noexcept {
    if (r.is_related and not r.compound().session_id) return nt_status::invalid_parameter;
    const std::uint64_t id = r.is_related ? *r.compound().session_id : r.header().session_id;
    r.compound().session_id.reset();
    if (r.header().command == wire::command::negotiate) return nt_status::success;
    std::shared_ptr<channel> by = find_channel(id);
    if (by == nullptr) return nt_status::user_session_deleted;
    // A session that is being made goes on by SESSION_SETUP; one that is being
    // bound is not here yet.
    const bool is_made_here = r.header().command == wire::command::session_setup and
                              by->session->state() == session::phase::in_progress;
    if (not by->is_established() and not is_made_here) return nt_status::user_session_deleted;
    r.session = by->session;
    r.channel = std::move(by);
    r.compound().session_id = id;
    return nt_status::success;
}

// Finds the signer for a request whose session is not one of this connection's. If the session was
// one before, the key of its channel still signs the error; or the request binds the session.
void connection::find_signer(request& r) noexcept {
    if (not wire::has(r.header().flags, wire::header_flags::signed_message)) return;
    const auto former =
        std::ranges::find(former_channels_, r.header().session_id, &former_channel::session_id);
    if (former == former_channels_.end()) {
        host_.functions().prove_session_key(r);
        return;
    }
    const std::shared_ptr<auth::signer> by = former->signer;  // the list may change
    if (has_signed(*by, r)) (void)may_sign_reply(r, by);
}

nt_status connection::may_sign_reply(request& r, const std::shared_ptr<auth::signer>& by) noexcept {
    // CANCEL has no reply, and the message id of another request.
    if (r.header().command == wire::command::cancel or r.sign_reply_with(by)) return nt_status::success;
    close("late request: its signing key may already have signed a reply to it");
    return nt_status::access_denied;
}

void connection::remember(const channel& ended) noexcept {
    ENSURE(ended.has_ended(), "a channel that is remembered has left its connection");
    ENSURE(former_channels_.size() <= limits::former_channels_max, "few former channels are kept");
    if (ended.signer == nullptr) return;
    if (former_channels_.size() == limits::former_channels_max)
        former_channels_.erase(former_channels_.begin());
    former_channels_.push_back({.session_id = ended.session->id, .signer = ended.signer});
}

nt_status connection::check_signature(request& r) noexcept {
    session& by = *r.session;
    const bool is_signed = wire::has(r.header().flags, wire::header_flags::signed_message);
    if (r.encrypted_by != nullptr)
        return r.encrypted_by == r.channel ? nt_status::success : nt_status::access_denied;
    const bool sets_up = r.header().command == wire::command::session_setup;
    if (by.requires_encryption and by.state() != session::phase::in_progress and not sets_up)
        return nt_status::access_denied;
    if (is_signed) {
        if (not r.channel->signer) return sets_up ? nt_status::success : nt_status::access_denied;
        if (not has_signed(*r.channel->signer, r)) return nt_status::access_denied;
        return may_sign_reply(r, r.channel->signer);
    }
    if (by.requires_signing and r.channel->signer) return nt_status::access_denied;
    return nt_status::success;
}

nt_status connection::find_tree(request& r) noexcept {
    if (r.is_related and not r.compound().tree_id) return nt_status::invalid_parameter;
    const std::uint32_t id = r.is_related ? *r.compound().tree_id : r.header().tree_id;
    r.compound().tree_id.reset();
    r.tree = r.session->find_tree(id);
    if (r.tree == nullptr) return nt_status::network_name_deleted;
    r.compound().tree_id = id;
    if (r.tree->requires_encryption and r.encrypted_by == nullptr) return nt_status::access_denied;
    return nt_status::success;
}

// CANCEL names what it ends by the async id it was given, or else by its message id
// ([MS-SMB2] 3.3.5.16). It is never answered, so one that may not end it, or is not of its
// session, does nothing.
void connection::serve_cancel(request& cancel) noexcept {
    if (find_session(cancel) != nt_status::success or check_signature(cancel) != nt_status::success) return;
    const bool by_async = wire::has(cancel.header().flags, wire::header_flags::async);
    for (request& waiting : requests_) {
        ENSURE(&waiting.connection() == this, "a request is in the list of its connection");
        if (&waiting == &cancel or waiting.session != cancel.session) continue;
        const bool is_meant = by_async
                                  ? waiting.async_id != 0 and waiting.async_id == cancel.header().async_id
                                  : waiting.header().message_id == cancel.header().message_id;
        if (is_meant) {
            waiting.cancel();
            return;
        }
    }
}

}  // namespace sluice::smb::server
