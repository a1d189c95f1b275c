#include "tests/smb_simulation/clients/simulated_client.hpp"

#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/auth/key_derivation.hpp"
#include "sluice/smb/auth/logon/negotiator.hpp"
#include "sluice/smb/wire/message/compound.hpp"
#include "sluice/smb/wire/message/negotiate.hpp"
#include "sluice/smb/wire/message/session_setup.hpp"
#include "sluice/smb/wire/message/tree_connect.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb_simulation {

using namespace smb;  // NOLINT: the names of one protocol
using wire::command;

simulated_client::simulated_client(io::socket_handle socket, const clock_source& clock, std::uint64_t seed)
    : socket_(std::move(socket)), clock_(clock), random_(seed), secrets_(seed) {
    random_.fill(guid_.bytes);
}

void simulated_client::initialise_file(io::socket_handle socket) {
    socket_ = std::move(socket);
    outgoing_.clear();
    next_message_id_ = 0;
    credits_ = 1;
    awaited_ = 0;
    has_left_ = false;
    bytes_taken_ = 0;
    session_id_ = 0;
    tree_id_ = 0;
    signer_.reset();
    preauth_ = {};
}

wire::header simulated_client::next_header(command code) {
    wire::header header;
    header.command = code;
    header.credits = 1;
    header.credit_charge = 1;
    header.session_id = session_id_;
    header.tree_id = tree_id_;
    header.message_id = next_message_id_;
    if (is_related_) header.flags |= wire::header_flags::related;
    if (signer_) header.flags |= wire::header_flags::signed_message;
    adjust(header);
    if (code == command::cancel) return header;
    next_message_id_ += header.credit_charge;
    credits_ -= header.credit_charge;
    ++awaited_;
    return header;
}

void simulated_client::sign(mutable_bytes message) {
    const auto header = wire::decode_header(message);
    const auth::signed_message which{.message_id = header->message_id,
                                     .sender = auth::message_sender::client,
                                     .is_cancel = header->command == command::cancel};
    const auto made = signer_->sign(auth::with_zero_signature(message), which).value();
    std::memcpy(message.data() + wire::header_signature_offset, made.data(), made.size());
}

wire::raw_lock_element simulated_client::random_lock(std::uint64_t period) {
    wire::lock_flags flags = random_.below(2) == 0 ? wire::lock_flags::shared : wire::lock_flags::exclusive;
    if (random_.below(3) == 0) flags = wire::lock_flags::unlock;
    if (random_.below(period) == 0 and flags != wire::lock_flags::unlock)
        flags |= wire::lock_flags::fail_immediately;
    return wire::encode_lock_element(
        {.offset_bytes = random_.below(4) * 10, .length_bytes = 10 + random_.below(3) * 10, .flags = flags});
}

void simulated_client::append(bytes_view message) {
    if (not is_compound_) {
        std::array<std::byte, wire::frame_prefix_bytes> prefix{};
        byte_writer length(prefix);
        wire::encode_frame_prefix(length, message.size());
        outgoing_.insert(outgoing_.end(), prefix.begin(), prefix.end());
    } else if (outgoing_.size() != message_begin_) {
        const std::size_t padding = -(outgoing_.size() - message_begin_) & (wire::compound_alignment - 1);
        outgoing_.resize(outgoing_.size() + padding);
        const le32 next(static_cast<std::uint32_t>(outgoing_.size() - message_begin_));
        std::memcpy(outgoing_.data() + message_begin_ + wire::header_next_command_offset, &next, sizeof next);
        message_begin_ = outgoing_.size();
    }
    outgoing_.insert(outgoing_.end(), message.begin(), message.end());
}

void simulated_client::begin_compound() {
    is_compound_ = true;
    compound_begin_ = outgoing_.size();
    outgoing_.resize(outgoing_.size() + wire::frame_prefix_bytes);
    message_begin_ = outgoing_.size();
}

void simulated_client::end_compound() {
    is_compound_ = false;
    byte_writer prefix(mutable_bytes(outgoing_.data() + compound_begin_, wire::frame_prefix_bytes));
    wire::encode_frame_prefix(prefix, outgoing_.size() - compound_begin_ - wire::frame_prefix_bytes);
}

io::task<bool> simulated_client::send() {
    before_send(outgoing_);
    std::span<const std::byte> rest = outgoing_;
    while (not rest.empty()) {
        const io::io_request<io::const_bytes_type> wanted{.buffers = rest};
        const auto sent = co_await io::co_write(socket_, wanted);
        if (not sent) co_return false;
        rest = rest.subspan(sent.bytes_transferred());
    }
    outgoing_.clear();
    co_return true;
}

io::task<bool> simulated_client::fill(std::span<std::byte> room) {
    while (not room.empty()) {
        const io::io_request<io::bytes_type> wanted{.buffers = room};
        bytes_read_ = room.size();
        const auto got = co_await io::co_read(socket_, wanted);
        bytes_read_ = 0;
        if (not got or got.bytes_transferred() == 0) co_return false;
        bytes_taken_ += got.bytes_transferred();
        room = room.subspan(got.bytes_transferred());
    }
    co_return true;
}

io::task<void> simulated_client::leave_after(io::io_multiplexer& loop, std::chrono::seconds stay) {
    const deadline until(stay);
    const auto slept = co_await io::co_sleep(loop, until);
    if (not slept or not socket_.is_valid()) co_return;
    has_left_ = true;
    (void)socket_.shutdown(io::direction::out);
    (void)socket_.shutdown(io::direction::in);
}

io::task<bool> simulated_client::take_reply() {
    std::array<std::byte, wire::frame_prefix_bytes> prefix{};
    io::task<bool> taking = fill(prefix);
    if (not co_await std::move(taking)) co_return false;
    const auto length = wire::decode_frame_prefix(prefix, wire::frame_bytes_max);
    if (not length) {
        problem_ = "a frame without a length";
        co_return false;
    }
    received_.resize(*length);
    io::task<bool> filling = fill(received_);
    if (not co_await std::move(filling)) co_return false;
    if (not decompress(received_)) {
        problem_ = "a reply that cannot be decompressed";
        co_return false;
    }
    co_return take_apart();
}

bool simulated_client::take_apart() {
    wire::compound_reader reader(received_, 64);
    while (not reader.done()) {
        const auto message = reader.next();
        if (not message) {
            problem_ = "a reply that cannot be decoded";
            return false;
        }
        account(message->header());
        take_message(*message);
    }
    return true;
}

void simulated_client::account(const wire::header& header) {
    if (not wire::has(header.flags, wire::header_flags::response)) problem_ = "a request from the server";
    if (header.message_id == ~std::uint64_t{0}) {
        if (header.command != command::oplock_break) problem_ = "a notification that is not a break";
        return;
    }
    if (header.message_id >= next_message_id_) problem_ = "a reply without a request";
    credits_ += header.credits;
    if (header.status == wire::nt_status::pending) return;
    if (awaited_ == 0)
        problem_ = "more replies than requests";
    else
        --awaited_;
}

io::task<bool> simulated_client::set_up() {
    io::task<bool> negotiating = negotiate();
    if (not co_await std::move(negotiating)) co_return false;
    io::task<bool> logging_on = log_on();
    if (not co_await std::move(logging_on)) co_return false;
    io::task<bool> connecting = connect_tree();
    co_return co_await std::move(connecting);
}

io::task<bool> simulated_client::negotiate() {
    const std::array older{le16(0x0210), le16(0x0302)};
    const std::array newest{le16(0x0311)};
    const le16 hash(static_cast<std::uint16_t>(wire::hash_algorithm::sha_512));
    std::vector<le16> signing;
    for (const wire::signing_algorithm one : signing_offers_)
        signing.emplace_back(static_cast<std::uint16_t>(one));
    std::vector<le16> compression;
    for (const wire::compression_algorithm one : compression_offers_)
        compression.emplace_back(static_cast<std::uint16_t>(one));
    const bool is_newest = not signing.empty();
    const auto dialects = is_newest ? std::span<const le16>(newest) : std::span<const le16>(older);
    wire::negotiate_args hello{.capabilities = wire::capabilities::large_mtu | wire::capabilities::leasing |
                                               wire::capabilities::multi_channel |
                                               wire::capabilities::directory_leasing |
                                               wire::capabilities::persistent_handles,
                               .client_guid = guid_,
                               .dialects = wire::code_list<wire::dialect>(dialects),
                               .contexts = {}};
    if (is_newest) {
        hello.contexts.preauth = wire::preauth_integrity{
            .hashes = wire::code_list<wire::hash_algorithm>(std::span(&hash, 1)), .salt = {}};
        hello.contexts.signing = wire::code_list<wire::signing_algorithm>(signing);
        if (not compression.empty())
            hello.contexts.compression = wire::compression_capabilities{
                .flags = 1, .algorithms = wire::code_list<wire::compression_algorithm>(compression)};
    }
    put(command::negotiate, hello);
    preauth_.add(*bytes_view(outgoing_).from(wire::frame_prefix_bytes));
    io::task<bool> sending = send();
    if (not co_await std::move(sending)) co_return false;
    io::task<bool> taking = take_reply();
    if (not co_await std::move(taking)) co_return false;
    preauth_.add(received_);
    co_return true;
}

io::task<bool> simulated_client::authenticate(wire::session_setup_flags how) {
    const auth::credentials who{.user = "u",
                                .domain = {},
                                .workstation = {},
                                .target_name = {},
                                .hash = auth::nt_hash::of_password("p").value()};
    auth::initiating_negotiator initiator(who, secrets_, clock_);
    std::vector<std::byte> challenge;
    for (int round = 0; round != 4; ++round) {
        auto step = initiator.step(challenge);
        if (const auto* const done = std::get_if<auth::step_done>(&step)) {
            if (how == wire::session_setup_flags::none)
                session_signing_key_ = auth::derive_session_keys({.full_session_key = done->key.view(),
                                                                  .preauth_hash = std::nullopt})
                                           .signing;
            co_return true;
        }
        const auto* const next = std::get_if<auth::step_continue>(&step);
        if (next == nullptr) co_return false;
        if (round == 1) before_proof();
        put(command::session_setup,
            wire::session_setup_args{
                .flags = how, .previous_session_id = previous_session_id_, .security_blob = next->token});
        io::task<bool> sending = send();
        if (not co_await std::move(sending)) co_return false;
        io::task<bool> taking = take_reply();
        if (not co_await std::move(taking)) co_return false;
        const auto message = wire::message_view::of(received_);
        session_id_ = message->header().session_id;
        const auto reply = wire::decode_session_setup_reply(*message);
        const bool goes_on = message->header().status == wire::nt_status::more_processing_required;
        if (not reply or (wire::is_error(message->header().status) and not goes_on)) co_return false;
        challenge.assign(reply->security_blob.begin(), reply->security_blob.end());
    }
    co_return false;
}

io::task<bool> simulated_client::bind_to(const simulated_client& first) {
    session_id_ = first.session_id_;
    signer_.emplace(
        auth::signer::create(auth::signing_algorithm::aes_cmac, first.session_signing_key_).value());
    io::task<bool> binding = authenticate(wire::session_setup_flags::binding);
    const bool is_bound = co_await std::move(binding);
    signer_.reset();
    tree_id_ = first.tree_id_;
    co_return is_bound;
}

io::task<bool> simulated_client::connect_tree(std::string share) {
    const std::string path = wire::utf16_of("\\\\server\\" + share).value();
    put(command::tree_connect, wire::tree_connect_args{.path = std::as_bytes(std::span(path))});
    io::task<bool> sending = send();
    if (not co_await std::move(sending)) co_return false;
    io::task<bool> taking = take_reply();
    if (not co_await std::move(taking)) co_return false;
    tree_id_ = wire::message_view::of(received_)->header().tree_id;
    co_return true;
}

}  // namespace sluice::smb_simulation
