#include "tests/smb_simulation/clients/compliant_client.hpp"

#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/wire/message/cancel.hpp"
#include "sluice/smb/wire/message/echo.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;
using wire::nt_status;

namespace {

io::task<void> report(io::task<bool> what, std::optional<bool>& outcome) {
    outcome = co_await std::move(what);
}

}  // namespace

nt_status compliant_client::answer::status() const {
    return bytes.empty() ? nt_status::network_name_deleted : message().header().status;
}

compliant_client::compliant_client(world& where, std::uint64_t seed)
    : compliant_client(where, io::socket_address::loopback_v4(1), seed) {}

compliant_client::compliant_client(world& where, const io::socket_address& from, std::uint64_t seed)
    : simulated_client(where.connect(from), where.clock, seed), world_(where), tasks_(*where.loop) {
    EXPECT_TRUE(run(negotiate()));
    const auto reply = wire::decode_negotiate_reply(wire::message_view::of(received_).value());
    if (reply) server_capabilities_ = reply->capabilities;
    derives_keys_ = not reply or reply->dialect >= wire::dialect::smb_3_0;
    if (not derives_keys_) signing_ = auth::signing_algorithm::hmac_sha256;
}

compliant_client::compliant_client(world& where, std::vector<wire::signing_algorithm> offered,
                                   std::vector<wire::compression_algorithm> compression)
    : simulated_client(where.connect(), where.clock, 1), world_(where), tasks_(*where.loop) {
    signing_offers_ = std::move(offered);
    compression_offers_ = std::move(compression);
    EXPECT_TRUE(run(negotiate()));
    const auto reply = wire::decode_negotiate_reply(wire::message_view::of(received_).value());
    const bool is_newest = reply and reply->dialect == wire::dialect::smb_3_1_1;
    EXPECT_TRUE(is_newest);
    signing_was_chosen_ = is_newest and reply->contexts.signing;
    if (is_newest and reply->contexts.compression)
        compression_ = wire::negotiated_compression::choose(*reply->contexts.compression);
    if (signing_was_chosen_) signing_ = static_cast<auth::signing_algorithm>((*reply->contexts.signing)[0]);
}

compliant_client::~compliant_client() {
    if (socket_.is_valid()) close_connection();
    world_.run();
    EXPECT_EQ(problem(), "");
}

void compliant_client::adjust(wire::header& header) {
    header.credit_charge = charge;
    header.credits = credits_wanted;
    header.flags |= flags;
    header.channel_sequence = channel_sequence;
    if (header.command != command::cancel) return;
    header.flags |= wire::header_flags::async;
    header.async_id = cancelled_async_id_;
}

void compliant_client::cancel(std::uint64_t async_id) {
    cancelled_async_id_ = async_id;
    send(command::cancel, wire::cancel_args{});
}

bool compliant_client::decompress(std::vector<std::byte>& frame) {
    if (wire::kind_of_frame(frame) != wire::frame_kind::compressed) return true;
    const auto limits = wire::compression_limits_for(wire::frame_bytes_max, wire::frame_bytes_max);
    const auto size = wire::decompressed_bytes(frame, compression_, limits);
    if (not size) return false;
    std::vector<std::byte> messages(*size);
    if (not wire::decompress_message(frame, compression_, messages)) return false;
    frame = std::move(messages);
    ++compressed_frames_;
    return true;
}

void compliant_client::take_message(const wire::message_view& message) {
    if (message.header().status == nt_status::pending) {
        interims_[message.header().message_id] = message.header();
        return;
    }
    const bytes_view bytes = message.bytes();
    arrivals_.push_back(message.header().message_id);
    answers_[message.header().message_id] = {.bytes = {bytes.begin(), bytes.end()}};
}

void compliant_client::send_all() {
    const bool is_last = sends_at_most and * sends_at_most < outgoing_.size();
    if (is_last) outgoing_.resize(*sends_at_most);
    if (sends_at_most) *sends_at_most -= outgoing_.size();
    last_sent_ = outgoing_;
    (void)run(simulated_client::send());
    if (is_last) EXPECT_TRUE(socket_.shutdown(io::direction::out));
}

nt_status compliant_client::log_on(std::string_view user, std::string_view password) {
    return authenticate(user, password, wire::session_setup_flags::none);
}

nt_status compliant_client::begin_logon() {
    const auth::credentials unnamed;
    auth::initiating_negotiator initiator(unnamed, world_.secrets, world_.clock);
    const auto first = initiator.step({});
    const answer said =
        call(command::session_setup,
             wire::session_setup_args{.security_blob = std::get<auth::step_continue>(first).token});
    session_id_ = said.message().header().session_id;
    return said.status();
}

nt_status compliant_client::begin_session() {
    const auth::credentials unnamed{};
    auth::initiating_negotiator initiator(unnamed, world_.secrets, world_.clock);
    const auto step = initiator.step({});
    const std::uint64_t before = std::exchange(session_id_, 0);
    const auto& token = std::get<auth::step_continue>(step).token;
    const answer said = call(command::session_setup, wire::session_setup_args{.security_blob = token});
    session_id_ = before;
    return said.status();
}

void compliant_client::announce_frame(std::size_t bytes) {
    std::array<std::byte, wire::frame_prefix_bytes> prefix{};
    byte_writer writer(prefix);
    wire::encode_frame_prefix(writer, bytes);
    outgoing_.insert(outgoing_.end(), prefix.begin(), prefix.end());
    send_all();
}

void compliant_client::send_frames(std::span<const bytes_view> frames) {
    for (const bytes_view frame : frames) {
        std::array<std::byte, wire::frame_prefix_bytes> prefix{};
        byte_writer writer(prefix);
        wire::encode_frame_prefix(writer, frame.size());
        outgoing_.insert(outgoing_.end(), prefix.begin(), prefix.end());
        outgoing_.insert(outgoing_.end(), frame.begin(), frame.end());
    }
    send_all();
}

bool compliant_client::is_rejected() {
    return call(command::echo, wire::echo_args{}).status() == nt_status::network_name_deleted;
}

std::uint64_t compliant_client::send_proof(std::string_view user, std::string_view password) {
    const auth::credentials who{.user = std::string(user),
                                .domain = {},
                                .workstation = {},
                                .target_name = {},
                                .hash = auth::nt_hash::of_password(password).value()};
    auth::initiating_negotiator initiator(who, world_.secrets, world_.clock);
    auto step = initiator.step({});
    const answer said =
        call(command::session_setup,
             wire::session_setup_args{.security_blob = std::get<auth::step_continue>(step).token});
    session_id_ = said.message().header().session_id;
    const auto reply = wire::decode_session_setup_reply(said.message());
    step = initiator.step(reply->security_blob);
    return send(command::session_setup,
                wire::session_setup_args{.security_blob = std::get<auth::step_continue>(step).token});
}

nt_status compliant_client::bind_to(const compliant_client& first, std::string_view user,
                                    std::string_view password) {
    session_id_ = first.session_id_;
    signer_.emplace(auth::signer::create(first.signing_, first.signing_key_).value());
    const nt_status status = authenticate(user, password, wire::session_setup_flags::binding);
    signer_.reset();
    tree_id_ = first.tree_id_;
    return status;
}

nt_status compliant_client::authenticate(std::string_view user, std::string_view password,
                                         wire::session_setup_flags how) {
    auth::credentials who{
        .user = std::string(user), .domain = domain, .workstation = {}, .target_name = {}, .hash = {}};
    if (not user.empty()) who.hash = auth::nt_hash::of_password(password).value();
    auth::initiating_negotiator initiator(who, world_.secrets, world_.clock);
    std::vector<std::byte> token;
    answer said;
    auth::preauth_integrity transcript = preauth_;
    // A client that authenticates again keeps its keys.
    const bool gets_key = session_id_ == 0 or how == wire::session_setup_flags::binding;
    for (;;) {
        auto step = initiator.step(token);
        if (const auto* const done = std::get_if<auth::step_done>(&step)) {
            if (done->is_anonymous or session_flags_ == wire::session_flags::guest) return nt_status::success;
            if (gets_key and not derives_keys_) signing_key_ = auth::secret_bytes<16>(done->key.view());
            if (gets_key and derives_keys_)
                signing_key_ =
                    auth::derive_session_keys({.full_session_key = done->key.view(),
                                               .preauth_hash = signing_offers_.empty()
                                                                   ? std::nullopt
                                                                   : std::optional(transcript.value())})
                        .signing;
            EXPECT_TRUE(is_signed_by_key(said)) << "the last reply has the new key's signature";
        }
        const auto* const next = std::get_if<auth::step_continue>(&step);
        if (next == nullptr) return nt_status::success;
        said =
            call(command::session_setup, wire::session_setup_args{.flags = how,
                                                                  .previous_session_id = previous_session_id_,
                                                                  .security_blob = next->token});
        transcript.add(*bytes_view(last_sent_).from(wire::frame_prefix_bytes));
        if (token.empty()) first_of_authentication_ = last_sent_;
        const bool goes_on = said.status() == nt_status::more_processing_required;
        if (not goes_on and said.status() != nt_status::success) return said.status();
        if (goes_on) transcript.add(said.bytes);
        session_id_ = said.message().header().session_id;
        const auto reply = wire::decode_session_setup_reply(said.message());
        session_flags_ = reply->flags;
        token.assign(reply->security_blob.begin(), reply->security_blob.end());
    }
}

bool compliant_client::is_signed_by_key(const answer& said) {
    const auth::signed_message which{.message_id = said.message().header().message_id,
                                     .sender = auth::message_sender::server,
                                     .is_cancel = false};
    auto by = auth::signer::create(signing_, signing_key_);
    return by.value().verify(auth::with_zero_signature(said.bytes), which, said.message().header().signature);
}

nt_status compliant_client::connect_tree(std::string_view share) {
    const std::string path = wire::utf16_of("\\\\server\\" + std::string(share)).value();
    const answer said = call(command::tree_connect, wire::tree_connect_args{.path = view(path)});
    if (said.status() == nt_status::success) tree_id_ = said.message().header().tree_id;
    return said.status();
}

wire::create_args compliant_client::for_everything() {
    return {.desired_access = wire::file_all_access,
            .share_access = wire::share_access(7),
            .disposition = wire::create_disposition::open_if};
}

std::uint64_t compliant_client::send_create(std::string_view name, wire::create_args how) {
    const std::string spelled = wire::utf16_of(name).value();
    how.name = view(spelled);
    return send(command::create, how);
}

wire::create_reply compliant_client::create(std::string_view name, const wire::create_args& how) {
    const answer said = answer_to(send_create(name, how));
    EXPECT_EQ(said.status(), nt_status::success) << name;
    if (said.status() != nt_status::success) return {};
    return wire::decode_create_reply(said.message()).value();
}

std::uint64_t compliant_client::async_id_of(std::uint64_t message_id) {
    return interim_of(message_id).async_id;
}

wire::header compliant_client::interim_of(std::uint64_t message_id) {
    while (not interims_.contains(message_id))
        if (not run(take_reply())) return {};
    return interims_[message_id];
}

void compliant_client::sign(bool does) {
    signer_.reset();
    if (does) signer_.emplace(auth::signer::create(signing_, signing_key_).value());
}

std::uint64_t compliant_client::send_copy(const std::vector<std::byte>& frame) {
    const auto header = wire::decode_header(*bytes_view(frame).from(wire::frame_prefix_bytes));
    next_message_id_ = std::max(next_message_id_, header->message_id + 1);
    ++awaited_;
    outgoing_ = frame;
    send_all();
    return header->message_id;
}

bool compliant_client::is_answered(std::uint64_t message_id) {
    EXPECT_EQ(call(command::echo, wire::echo_args{}).status(), nt_status::success);
    return answers_.contains(message_id);
}

compliant_client::answer compliant_client::answer_to(std::uint64_t message_id) {
    while (not answers_.contains(message_id))
        if (not run(take_reply())) return {};
    last_answer_ = std::move(answers_.extract(message_id).mapped());
    return last_answer_;
}

// Runs a task until it has ended, however long that takes.
bool compliant_client::run(io::task<bool> what) {
    std::optional<bool> outcome;
    tasks_.spawn(report(std::move(what), outcome));
    while (not outcome and world_.loop->run().value_or(0) > 0) {}
    if (outcome) return *outcome;
    ADD_FAILURE() << "no answer: " << world_.loop->stalled();
    tasks_.cancel();
    while (not outcome and world_.loop->run().value_or(0) > 0) {}
    return false;
}

}  // namespace sluice::smb_simulation
