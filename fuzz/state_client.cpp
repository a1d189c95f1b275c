#include "fuzz/state_client.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "sluice/smb/wire/file/ioctl.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/transform_header.hpp"

namespace sluice::fuzz {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

client::client(world& where, program& script) : world_(where), script_(script), room_(std::size_t{1} << 16) {
    for (unsigned i = 0; i != connections; ++i)
        wires_[i].guid.bytes[0] = std::byte{1};
}

client::~client() {
    drop_all();
}

void client::connect(unsigned at) {
    drop(at);
    const wire::guid guid = wires_[at].guid;
    wires_[at] = {};
    wires_[at].guid = guid;
    wires_[at].descriptor = world_.connect();
}

void client::drop(unsigned at) {
    if (wires_[at].descriptor >= 0) ::close(std::exchange(wires_[at].descriptor, -1));
    for (session& one : sessions_) {
        one.signing_keys.erase(at);
        one.sealers.erase(at);
    }
}

void client::drop_all() {
    for (unsigned i = 0; i != connections; ++i)
        drop(i);
}

void client::shut(unsigned at) {
    if (wires_[at].descriptor >= 0) ::shutdown(wires_[at].descriptor, SHUT_WR);
}

envelope client::take_envelope() {
    const unsigned bits = script_.byte();
    return {.connection = static_cast<unsigned>(bits % connections),
            .is_signed = (bits & 4U) != 0,
            .is_sealed = (bits & 8U) != 0,
            .is_replay = (bits & 16U) != 0,
            .is_mutated = (bits & 32U) != 0,
            .is_odd = (bits & 64U) != 0,
            .goes_on = (bits & 128U) != 0};
}

client::session* client::find_session(std::uint64_t id) {
    for (session& one : sessions_)
        if (one.id == id) return &one;
    return nullptr;
}

wire::header client::next_header(const envelope& how, command code) {
    wire_end& at = wires_[how.connection];
    wire::header header;
    header.command = code;
    header.credits = 32;
    header.credit_charge = at.dialect == wire::dialect::smb_2_0_2 ? 0 : 1;
    header.session_id = at.session_id;
    header.message_id = at.next_message_id;
    if (const session* const by = find_session(at.session_id)) header.tree_id = by->tree;
    if (how.is_replay) header.flags |= wire::header_flags::replay;
    if (not at.compound.empty()) header.flags |= wire::header_flags::related;
    if (how.is_odd) make_odd(header);
    if (code != command::cancel and header.message_id == at.next_message_id)
        at.next_message_id += std::max<unsigned>(header.credit_charge, 1);
    return header;
}

// A session, tree or id that is not the connection's.
void client::make_odd(wire::header& header) {
    const unsigned whose = script_.byte();
    const unsigned tree = script_.byte();
    const unsigned id = script_.byte();
    const unsigned rest = script_.byte();
    if (whose != 0) header.session_id = whose <= sessions_.size() ? sessions_[whose - 1].id : whose - 1;
    if (tree != 0) header.tree_id = tree - 1;
    if (id != 0) header.message_id += id - 1;
    header.channel_sequence = static_cast<std::uint16_t>(rest & 7U);
    header.credits = static_cast<std::uint16_t>((rest >> 3) & 7U);
    if ((rest & 64U) != 0) header.credit_charge = static_cast<std::uint16_t>(rest);
    if ((rest & 128U) != 0) {
        header.flags |= wire::header_flags::async;
        header.async_id = some_async_id(rest & 7U);
    }
}

void client::finish(const envelope& how, std::vector<std::byte> message) {
    if (how.is_mutated and not message.empty()) {
        const unsigned where = script_.byte();
        // Mostly the body, because a header without its magic number is always
        // refused in the same way.
        message[(where + 12) % message.size()] ^= static_cast<std::byte>(script_.byte());
    }
    wire_end& at = wires_[how.connection];
    at.compound.push_back(std::move(message));
    at.signs.push_back(how.is_signed);
    constexpr std::size_t compound_max = 12;
    if (not how.goes_on or at.compound.size() == compound_max) flush(how);
}

void client::flush(const envelope& how) {
    wire_end& at = wires_[how.connection];
    std::vector<std::byte> content;
    for (std::size_t i = 0; i != at.compound.size(); ++i) {
        std::vector<std::byte>& message = at.compound[i];
        if (i + 1 != at.compound.size()) {
            message.resize(message.size() + (-message.size() & (wire::compound_alignment - 1)));
            const le32 next(static_cast<std::uint32_t>(message.size()));
            std::memcpy(message.data() + wire::header_next_command_offset, &next, sizeof next);
        }
        if (at.signs[i]) sign(how.connection, message);
        content.insert(content.end(), message.begin(), message.end());
    }
    at.last_request = at.compound.back();
    at.compound.clear();
    at.signs.clear();
    const session* const by = find_session(at.session_id);
    const bool seals = how.is_sealed or (by != nullptr and by->must_seal);
    if (seals) content = sealed(how, content);
    send_frame(how.connection, content);
    world_.settle();
    take_replies();
}

void client::sign(unsigned connection, mutable_bytes message) {
    const auto header = wire::decode_header(message);
    if (not header) return;
    session* const by = find_session(header->session_id);
    if (by == nullptr or not by->signing_key) return;
    const wire_end& at = wires_[connection];
    // A binding is signed with the session's key.
    const auto own = by->signing_keys.find(connection);
    const auto& key = own == by->signing_keys.end() ? *by->signing_key : own->second;
    // A new signer for each message, because this client also repeats message IDs, for
    // which a signer aborts.
    auto signer = auth::signer::create(at.signing, key);
    if (not signer) return;
    const le32 flags(static_cast<std::uint32_t>(header->flags | wire::header_flags::signed_message));
    std::memcpy(message.data() + wire::header_flags_offset, &flags, sizeof flags);
    const auth::signed_message which{.message_id = header->message_id,
                                     .sender = auth::message_sender::client,
                                     .is_cancel = header->command == command::cancel};
    const auto made = signer->sign(auth::with_zero_signature(message), which);
    if (not made) return;
    std::memcpy(message.data() + wire::header_signature_offset, made->data(), made->size());
}

std::vector<std::byte> client::sealed(const envelope& how, bytes_view messages) {
    std::vector<std::byte> plain(messages.begin(), messages.end());
    session* const by = find_session(wires_[how.connection].session_id);
    if (by == nullptr or by->encryption_key == nullptr or plain.empty()) return plain;
    auto found = by->sealers.find(how.connection);
    if (found == by->sealers.end()) {
        auto made = by->encryption_key->make_sealer(secrets_);
        if (not made) return plain;
        found = by->sealers.emplace(how.connection, *std::move(made)).first;
    }
    std::vector<std::byte> bytes(wire::transform_header_bytes + plain.size());
    const bytes_view part(plain);
    if (not found->second.seal(by->id, std::span(&part, 1), mutable_bytes(bytes))) return plain;
    return bytes;
}

void client::send_frame(unsigned connection, bytes_view content) {
    std::array<std::byte, wire::frame_prefix_bytes> prefix{};
    byte_writer writer{mutable_bytes(prefix)};
    wire::encode_frame_prefix(writer, content.size());
    std::vector<std::byte> frame(prefix.begin(), prefix.end());
    frame.insert(frame.end(), content.begin(), content.end());
    send_bytes(connection, frame);
}

// Drops the connection if the server does not read.
void client::send_bytes(unsigned connection, bytes_view bytes) {
    constexpr unsigned attempts_max = 4;
    for (unsigned attempts = 0; not bytes.empty() and wires_[connection].descriptor >= 0;) {
        const ssize_t sent =
            ::send(wires_[connection].descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) {
            bytes = *bytes.from(static_cast<std::size_t>(sent));
            continue;
        }
        if (++attempts == attempts_max) return drop(connection);
        world_.settle();
        take_replies();
    }
}

void client::send_raw(unsigned connection, bytes_view frame) {
    send_bytes(connection, frame);
    world_.settle();
    take_replies();
}

void client::send_body(const envelope& how, command code, bytes_view body) {
    std::vector<std::byte> message(wire::header_bytes + body.size());
    byte_writer writer{mutable_bytes(message)};
    encode(writer, next_header(how, code));
    writer.put_bytes(body);
    ENSURE(writer.finish().has_value());
    finish(how, std::move(message));
}

void client::take_replies() {
    for (bool is_more = true; is_more;) {
        is_more = false;
        for (unsigned i = 0; i != connections; ++i)
            is_more |= receive(i);
        if (is_more) world_.settle();
    }
}

bool client::receive(unsigned connection) {
    wire_end& at = wires_[connection];
    if (at.descriptor < 0) return false;
    const ssize_t got = ::recv(at.descriptor, room_.data(), room_.size(), MSG_DONTWAIT);
    if (got <= 0) return false;
    at.received.insert(at.received.end(), room_.begin(), room_.begin() + got);
    take_frames(connection);
    return true;
}

void client::take_frames(unsigned connection) {
    wire_end& at = wires_[connection];
    std::size_t taken = 0;
    while (at.received.size() - taken >= wire::frame_prefix_bytes) {
        std::array<std::byte, wire::frame_prefix_bytes> prefix{};
        std::memcpy(prefix.data(), at.received.data() + taken, prefix.size());
        const auto length = wire::decode_frame_prefix(prefix, wire::frame_bytes_max);
        ENSURE(length.has_value(), "the server sent a frame without a length");
        if (at.received.size() - taken - prefix.size() < *length) break;
        take_frame(connection, mutable_bytes(at.received.data() + taken + prefix.size(), *length));
        taken += prefix.size() + *length;
    }
    at.received.erase(at.received.begin(), at.received.begin() + static_cast<std::ptrdiff_t>(taken));
}

void client::take_frame(unsigned connection, mutable_bytes frame) {
    const auto kind = wire::kind_of_frame(frame);
    ENSURE(kind.has_value(), "the server sent something other than a message");
    if (*kind == wire::frame_kind::smb2) return take_messages(connection, frame);
    if (*kind != wire::frame_kind::encrypted) return;
    const auto found = wire::decode_transform(frame);
    ENSURE(found.has_value(), "the server sent a broken transform header");
    session* const by = find_session(found->header.session_id);
    if (by == nullptr or not by->opener) return;
    std::vector<std::byte> plain(found->ciphertext.size());
    const bytes_view ciphertext = found->ciphertext;
    const bytes_view header(frame.data(), wire::transform_header_bytes);
    if (by->opener->open(header, std::span(&ciphertext, 1), mutable_bytes(plain)))
        take_messages(connection, plain);
}

void client::take_messages(unsigned connection, bytes_view messages) {
    wire::compound_reader reader(messages, 64);
    while (not reader.done()) {
        const auto message = reader.next();
        ENSURE(message.has_value(), "the server sent a malformed compound");
        ENSURE(wire::has(message->header().flags, wire::header_flags::response), "the server sent a request");
        take_message(connection, *message);
    }
}

void client::take_message(unsigned connection, const wire::message_view& message) {
    wire_end& at = wires_[connection];
    const wire::header& header = message.header();
    const auto remember = [](auto& list, auto&& one) {
        if (list.size() == remembered_max) list.pop_front();
        list.push_back(std::forward<decltype(one)>(one));
    };
    if (header.status == nt_status::pending) return remember(async_ids_, header.async_id);
    at.last_reply.assign(message.bytes().begin(), message.bytes().end());
    if (header.command == command::session_setup) {
        const auto reply = wire::decode_session_setup_reply(message);
        at.said = setup_reply{.status = header.status, .session_id = header.session_id, .token = {}};
        if (not reply) return;
        at.said->flags = reply->flags;
        at.said->token.assign(reply->security_blob.begin(), reply->security_blob.end());
        return;
    }
    if (wire::is_error(header.status)) return;
    if (header.command == command::negotiate) return take_negotiate(at, message);
    if (header.command == command::oplock_break) return take_notification(message);
    if (header.command == command::ioctl) return take_control(message);
    if (header.command == command::tree_connect)
        if (session* const by = find_session(header.session_id)) by->tree = header.tree_id;
    if (header.command == command::create)
        if (const auto reply = wire::decode_create_reply(message))
            remember(files_, open_file{.id = reply->file});
}

void client::take_control(const wire::message_view& message) {
    const auto reply = wire::decode_ioctl_reply(message);
    if (not reply or reply->code != wire::control_code::offload_read) return;
    if (const auto read = wire::decode_offload_read_reply(reply->output)) last_token_ = read->token;
}

void client::take_notification(const wire::message_view& message) {
    const auto broken = wire::decode_oplock_break_reply(message);
    ENSURE(broken.has_value(), "the server sent a break that cannot be decoded");
    if (breaks_.size() == remembered_max) breaks_.pop_front();
    if (const auto* lease = std::get_if<wire::lease_break_notification>(&broken->sent))
        breaks_.push_back({.acknowledged = wire::lease_break{.key = lease->key, .state = lease->new_state}});
    else if (const auto* oplock = std::get_if<wire::oplock_break>(&broken->sent))
        breaks_.push_back({.acknowledged = *oplock});
}

void client::take_negotiate(wire_end& at, const wire::message_view& message) {
    const auto reply = wire::decode_negotiate_reply(message);
    if (not reply) return;
    at.dialect = reply->dialect;
    at.signing = at.dialect >= wire::dialect::smb_3_0 ? auth::signing_algorithm::aes_cmac
                                                      : auth::signing_algorithm::hmac_sha256;
    if (reply->contexts.signing and not reply->contexts.signing->empty())
        at.signing = auth::signing_algorithm((*reply->contexts.signing)[0]);
    if (reply->contexts.ciphers and not reply->contexts.ciphers->empty() and
        (*reply->contexts.ciphers)[0] != wire::cipher::none)
        at.cipher = auth::cipher_algorithm((*reply->contexts.ciphers)[0]);
    at.preauth.add(at.last_request);
    at.preauth.add(message.bytes());
}

wire::file_id client::some_file(const envelope& how, unsigned choice) const {
    if (not wires_[how.connection].compound.empty() and choice % 4 != 3) return wire::file_id_of_previous;
    if (choice == 255 or files_.empty())
        return {.persistent_part = le64(choice), .volatile_part = le64(choice)};
    return files_[files_.size() - 1 - choice % files_.size()].id;
}

std::uint64_t client::some_async_id(unsigned choice) const {
    return async_ids_.empty() ? choice : async_ids_[async_ids_.size() - 1 - choice % async_ids_.size()];
}

std::optional<wire::oplock_break_args> client::some_break() {
    if (breaks_.empty()) return std::nullopt;
    const wire::oplock_break_args last = breaks_.back();
    breaks_.pop_back();
    return last;
}

// --- negotiation and authentication
// ----------------------------------------------------------------------------

void client::negotiate(const envelope& how, unsigned choice, unsigned algorithms) {
    using wire::dialect;
    constexpr std::array known{dialect::smb_2_0_2, dialect::smb_2_1, dialect::smb_3_0, dialect::smb_3_0_2,
                               dialect::smb_3_1_1};
    std::vector<le16> dialects;
    for (std::size_t i = 0; i != known.size(); ++i)
        if (choice % 6 == i or choice % 6 == 5) dialects.emplace_back(static_cast<std::uint16_t>(known[i]));
    wires_[how.connection].guid.bytes[0] = static_cast<std::byte>(1 + (choice / 6) % 3);
    const le16 hash(static_cast<std::uint16_t>(wire::hash_algorithm::sha_512));
    const le16 cipher(static_cast<std::uint16_t>(1 + algorithms % 5));
    const le16 signing(static_cast<std::uint16_t>((algorithms >> 3) % 4));
    const std::array<std::byte, 32> salt{};
    wire::negotiate_args args{.capabilities = wire::capabilities(0x7f ^ ((algorithms >> 5) << 1)),
                              .client_guid = wires_[how.connection].guid,
                              .dialects = wire::code_list<dialect>(std::span(std::as_const(dialects))),
                              .contexts = {}};
    if (choice % 6 >= 4) {
        args.contexts.preauth.emplace();
        args.contexts.preauth->hashes = wire::code_list<wire::hash_algorithm>(std::span(&hash, 1));
        args.contexts.preauth->salt = salt;
        args.contexts.ciphers = wire::code_list<wire::cipher>(std::span(&cipher, 1));
        if ((algorithms & 128U) == 0)
            args.contexts.signing = wire::code_list<wire::signing_algorithm>(std::span(&signing, 1));
    }
    send(how, command::negotiate, args);
}

namespace {

auth::credentials credentials_of(unsigned user, const client::logon& as) {
    const bool is_anonymous = user % 4 == 3;
    auth::credentials who{.user = is_anonymous ? std::string() : std::string(1, "uvg"[user % 4]),
                          .domain = as.is_in_other_domain ? "ELSEWHERE" : "",
                          .workstation = {},
                          .target_name = {},
                          .hash = {}};
    if (not is_anonymous)
        who.hash = auth::nt_hash::of_password(as.has_wrong_password ? "wrong" : "p").value();
    return who;
}

}  // namespace

// Sends one token. Returns whether the server has answered with another, or with success.
bool client::step_logon(const envelope& how, const logon& as, bytes_view token,
                        auth::preauth_integrity& preauth) {
    wire_end& at = wires_[how.connection];
    at.said.reset();
    wire::session_setup_args args{.security_blob = token};
    if (as.is_binding) args.flags = wire::session_setup_flags::binding;
    if (as.names_previous and not sessions_.empty()) args.previous_session_id = sessions_.front().id;
    send(how, command::session_setup, args);
    preauth.add(at.last_request);
    if (not at.said) return false;
    if (at.said->status == nt_status::more_processing_required) preauth.add(at.last_reply);
    return at.said->status == nt_status::more_processing_required or at.said->status == nt_status::success;
}

void client::log_on(const envelope& how, const logon& as) {
    wire_end& at = wires_[how.connection];
    auth::preauth_integrity preauth = at.preauth;
    if (as.is_binding) {
        if (sessions_.empty()) return;
        at.session_id = sessions_[as.user / 4 % sessions_.size()].id;
    } else if (not as.continues_session) {
        at.session_id = 0;
    }
    auth::credentials who = credentials_of(as.user, as);
    auth::initiating_negotiator initiator(who, secrets_, world_.clock());
    std::vector<std::byte> token;
    constexpr unsigned steps_max = 4;
    for (unsigned steps = 0; steps != steps_max; ++steps) {
        auto step = initiator.step(token);
        if (const auto* const done = std::get_if<auth::step_done>(&step))
            return establish(how, as, done->key, preauth);
        const auto* const next = std::get_if<auth::step_continue>(&step);
        if (next == nullptr) return;
        if (steps == 1 and as.stops_halfway) return;
        if (steps == 0 and as.changes_user) who = credentials_of(as.user + 1, as);
        if (not step_logon(how, as, next->token, preauth)) return;
        at.session_id = at.said->session_id;
        token = at.said->token;
    }
}

void client::establish(const envelope& how, const logon& as, const auth::session_key& key,
                       const auth::preauth_integrity& preauth) {
    wire_end& at = wires_[how.connection];
    if (not at.said or at.said->status != nt_status::success) return;
    session* by = find_session(at.session_id);
    if (by != nullptr and not as.is_binding) return;  // it keeps its keys
    const bool has_keys = as.user % 4 != 3 and at.said->flags != wire::session_flags::guest;
    if (by == nullptr) {
        if (sessions_.size() == remembered_max) sessions_.pop_front();
        by = &sessions_.emplace_back();
        by->id = at.session_id;
        by->must_seal = wire::has(at.said->flags, wire::session_flags::encrypt_data);
    }
    if (not has_keys) return;
    auth::secret_bytes<16> signing_key = key.view().size() == 16 ? key.copy() : auth::secret_bytes<16>();
    if (at.dialect >= wire::dialect::smb_3_0) {
        auth::session_key_material material{
            .full_session_key = key.view(), .cipher = at.cipher, .preauth_hash = {}};
        if (at.dialect == wire::dialect::smb_3_1_1) material.preauth_hash = preauth.value();
        auth::session_keys keys = auth::derive_session_keys(material);
        signing_key = std::move(keys.signing);
        if (by->encryption_key == nullptr) {
            by->encryption_key = std::make_unique<auth::sealing_key>(std::move(keys.client_to_server));
            if (auto made = auth::opener::create(keys.server_to_client)) by->opener = *std::move(made);
        }
    }
    by->signing_keys.erase(how.connection);
    by->signing_keys.emplace(how.connection, signing_key.copy());
    if (not by->signing_key) by->signing_key = std::move(signing_key);
}

}  // namespace sluice::fuzz
