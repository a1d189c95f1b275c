#include "sluice/smb/client/session.hpp"

#include <algorithm>

#include "sluice/io/task/awaitable.hpp"
#include "sluice/smb/wire/message/logoff.hpp"

namespace sluice::smb::client {

using wire::dialect;
using wire::nt_status;

namespace {

constexpr const char* step = "log on";

[[nodiscard]] client_error of_crypto(const error& why) noexcept {
    return client_error::of_io("prepare signing and encryption", why);
}

// Returns the extra credits that the first message pays for, so that these ids remain for the
// bindings.
[[nodiscard]] std::uint64_t spare_ids_of(const connection& over) noexcept {
    const bool needs_ids =
        over.agreed().signing == auth::signing_algorithm::aes_gmac and over.options().channels > 2;
    if (not needs_ids or not over.has_ids_for_channels()) return 0;
    return limits::binding_ids_per_channel * (over.options().channels - 1) - 1;
}

}  // namespace

io::task<outcome<not_null_ptr<session>>> session::log_on(connection& first,
                                                         const auth::credentials& who) noexcept {
    std::unique_ptr<session> fresh(new session(first));
    first.secure({});
    io::task<outcome<set_up>> exchanging = fresh->exchange_tokens(first, who, false);
    const outcome<set_up> made = co_await std::move(exchanging);
    if (not made) co_return failed(made.error());
    const outcome<void> taken = fresh->take_keys(first, *made);
    if (not taken) {
        first.break_soon(taken.error());
        co_return failed(taken.error());
    }
    first.note_logged_on();
    co_return not_null_ptr(std::move(fresh));
}

// Exchanges the tokens of a setup. The last reply is in the connection's memory, so the caller
// inspects it before it awaits anything else.
io::task<outcome<session::set_up>> session::exchange_tokens(connection& over, const auth::credentials& who,
                                                            bool binds) noexcept {
    auth::initiating_negotiator initiator(who, over.deps().random, over.deps().clock);
    const bool hashes = over.agreed().dialect >= dialect::smb_3_1_1;
    set_up made{.key = {}, .flags = {}, .preauth = over.agreed().preauth, .last = {}};
    std::vector<std::byte> token = over.agreed().security_offer;
    for (unsigned round = 0; round != limits::logon_rounds_max; ++round) {
        auto next = initiator.step(token);
        if (auto* const refused = std::get_if<auth::step_refused>(&next))
            co_return failed(client_error::of_protocol(step, refused->reason));
        if (auto* const done = std::get_if<auth::step_done>(&next)) {
            if (round == 0 or made.last.header.status != nt_status::success)
                co_return failed(
                    client_error::of_protocol(step, "the logon ended without the server's consent"));
            made.key = std::move(done->key);
            co_return std::move(made);
        }
        if (round != 0 and made.last.header.status == nt_status::success)
            co_return failed(client_error::of_protocol(step, "the server accepted an incomplete logon"));
        const std::vector<std::byte> mine = std::get<auth::step_continue>(std::move(next)).token;
        const wire::session_setup_args asked{
            .flags = binds ? wire::session_setup_flags::binding : wire::session_setup_flags::none,
            .security_mode = over.agreed().offered_security_mode,
            .capabilities = wire::capabilities::none,
            .security_blob = mine};
        if (hashes) over.hash_next_request(made.preauth);
        const request_options how{.step = step,
                                  .payload_bytes = round == 0 and not binds ? spare_ids_of(over) << 16 : 0,
                                  .must_sign = binds,
                                  .room_bytes = static_cast<std::uint32_t>(mine.size() + 128)};
        io::task<outcome<reply>> asking = over.call(wire::command::session_setup, asked, how);
        const outcome<reply> answered = co_await std::move(asking);
        if (not answered) co_return failed(answered.error());
        made.last = *answered;
        if (hashes and answered->header.status == nt_status::more_processing_required)
            made.preauth.add(answered->message);
        if (not binds and id_ == 0) {
            id_ = answered->header.session_id;
            over.secure({.session_id = id_});
        }
        const auto said = wire::decode_session_setup_reply(*wire::message_view::of(answered->message));
        if (not said) co_return failed(client_error::of_protocol(step, "invalid SESSION_SETUP reply"));
        made.flags = said->flags;
        token.assign(said->security_blob.begin(), said->security_blob.end());
    }
    co_return failed(client_error::of_protocol(step, "too many rounds of SESSION_SETUP"));
}

outcome<auth::signer> session::signer_for(connection& over, const set_up& made) noexcept {
    if (over.agreed().dialect < dialect::smb_3_0) {
        auto signer = auth::signer::create(auth::signing_algorithm::hmac_sha256, made.key);
        if (not signer) return failed(of_crypto(signer.error()));
        return std::move(*signer);
    }
    auth::session_key_material from;
    from.full_session_key = made.key.view();
    if (over.agreed().cipher) from.cipher = *over.agreed().cipher;
    if (over.agreed().dialect >= dialect::smb_3_1_1) from.preauth_hash = made.preauth.value();
    auth::session_keys keys = auth::derive_session_keys(from);
    auth::used_message_ids ids;
    if (not signs_with_) {  // the first channel: earlier ids are for bindings
        binding_ids_end_ = made.last.header.message_id + 1;
        ids = auth::used_message_ids({.first = binding_ids_end_, .end = ~std::uint64_t{0}});
    }
    auto signer = auth::signer::create(over.agreed().signing, keys.signing, std::move(ids));
    if (not signer) return failed(of_crypto(signer.error()));
    if (not seals_with_ and over.agreed().cipher) {
        seals_with_.emplace(std::move(keys.client_to_server));
        opens_with_.emplace(std::move(keys.server_to_client));
        signs_with_.emplace(std::move(keys.signing));
    } else if (not signs_with_) {
        signs_with_.emplace(std::move(keys.signing));
    }
    return std::move(*signer);
}

// Verifies the signature of the final reply of the setup, which proves that the server knows the
// new key.
outcome<void> session::verify_last(connection& over, auth::signer& with, const set_up& made) noexcept {
    const wire::header& header = made.last.header;
    if (not wire::has(header.flags, wire::header_flags::signed_message)) {
        if (over.agreed().dialect < dialect::smb_3_1_1 and not over.options().signs) return {};
        return failed(client_error::of_protocol(step, "the final SESSION_SETUP reply is not signed"));
    }
    const auto parts = auth::with_zero_signature(made.last.message);
    const bool is_right = with.verify(
        parts, {.message_id = header.message_id, .sender = auth::message_sender::server, .is_cancel = false},
        header.signature);
    if (is_right) return {};
    return failed(client_error::of_protocol(
        step, "invalid signature of SESSION_SETUP: the server does not know the password"));
}

outcome<void> session::seal_over(connection& over, channel_security& security) noexcept {
    if (not seals_with_) return {};
    auto sealer = seals_with_->make_sealer(over.deps().random);
    if (not sealer) return failed(of_crypto(sealer.error()));
    auto opener = auth::opener::create(*opens_with_);
    if (not opener) return failed(of_crypto(opener.error()));
    security.sealer.emplace(std::move(*sealer));
    security.opener.emplace(std::move(*opener));
    security.seals_all = encrypts_;
    return {};
}

outcome<void> session::take_keys(connection& over, const set_up& made) noexcept {
    const bool must_sign =
        over.options().signs or wire::has(over.agreed().security_mode, wire::security_mode::signing_required);
    is_unauthenticated_ = wire::has(made.flags, wire::session_flags::guest) or
                          wire::has(made.flags, wire::session_flags::anonymous);
    encrypts_ = over.options().encryption == encryption::required or
                wire::has(made.flags, wire::session_flags::encrypt_data);
    if (is_unauthenticated_) {
        if (encrypts_)
            return failed(client_error::of_policy(
                step, "the server accepted the user as a guest, and guests cannot encrypt"));
        if (over.options().signs)
            return failed(client_error::of_policy(
                step,
                "the server accepted the user as a guest: others can read and change the data in transit; "
                "use --no-signing to accept that"));
        return {};
    }
    outcome<auth::signer> signer = signer_for(over, made);
    if (not signer) return failed(signer.error());
    if (const auto verified = verify_last(over, *signer, made); not verified) return verified;
    if (encrypts_ and not seals_with_)
        return failed(
            client_error::of_protocol(step, "the server requires encryption without a common cipher"));
    channel_security security{.session_id = id_};
    security.signer.emplace(std::move(*signer));
    security.signs_all = must_sign;
    if (const auto sealed = seal_over(over, security); not sealed) return sealed;
    over.secure(std::move(security));
    return {};
}

// Returns the ids for a binding. Each binding has its own ids, so that neither the session's key
// signs two requests, nor the server's key two replies, with one nonce.
outcome<auth::used_message_ids> session::ids_to_bind(connection& further) noexcept {
    if (further.agreed().signing != auth::signing_algorithm::aes_gmac) return auth::used_message_ids();
    const std::uint64_t first = next_binding_id_;
    const std::uint64_t end = first + limits::binding_ids_per_channel;
    if (end > binding_ids_end_ or not further.skip_to(first))
        return failed(
            client_error::of_policy("open another channel", "no unused message ids are left for AES-GMAC"));
    next_binding_id_ = end;
    return auth::used_message_ids({.first = first, .end = end});
}

io::task<outcome<void>> session::bind(connection& further, const auth::credentials& who) noexcept {
    constexpr const char* binding = "open another channel";
    const agreement& there = first().agreed();
    if (further.agreed().dialect < dialect::smb_3_0 or further.agreed().dialect != there.dialect)
        co_return failed(
            client_error::of_policy(binding, "all channels require the same dialect, 3.0 or later"));
    if (is_unauthenticated_ or not signs_with_)
        co_return failed(client_error::of_policy(binding, "a guest session supports only one channel"));
    if (further.agreed().server_guid != there.server_guid)
        co_return failed(client_error::of_policy(binding, "another server uses that address"));
    // A binding is signed with the session's key.
    const auto algorithm = further.agreed().signing;
    outcome<auth::used_message_ids> ids = ids_to_bind(further);
    if (not ids) co_return failed(ids.error());
    auto proof = auth::signer::create(algorithm, *signs_with_, std::move(*ids));
    if (not proof) co_return failed(of_crypto(proof.error()));
    channel_security interim{.session_id = id_};
    interim.signer.emplace(std::move(*proof));
    further.secure(std::move(interim));
    io::task<outcome<set_up>> exchanging = exchange_tokens(further, who, true);
    const outcome<set_up> made = co_await std::move(exchanging);
    if (not made) co_return failed(made.error());
    outcome<auth::signer> signer = signer_for(further, *made);
    if (not signer) co_return failed(signer.error());
    if (const auto verified = verify_last(further, *signer, *made); not verified)
        co_return failed(verified.error());
    channel_security security{.session_id = id_};
    security.signer.emplace(std::move(*signer));
    security.signs_all = first().security().signs_all;
    if (const auto sealed = seal_over(further, security); not sealed) co_return failed(sealed.error());
    further.secure(std::move(security));
    io::task<void> using_skipped = further.use_skipped();
    co_await std::move(using_skipped);
    channels_.push_back(&further);
    further.note_logged_on();
    co_return outcome<void>{};
}

connection& session::first() const noexcept {
    for (connection* const each : channels_)
        if (not each->is_broken()) return *each;
    return *channels_.front();
}

connection& session::idlest() const noexcept {
    connection* best = nullptr;
    for (connection* const each : channels_) {
        if (each->is_broken()) continue;
        if (best == nullptr or each->in_flight() < best->in_flight()) best = each;
    }
    return best != nullptr ? *best : *channels_.front();
}

void session::forget_lost() noexcept {
    connection* const oldest = channels_.front();
    const auto lost = std::erase_if(channels_, [](const connection* each) { return each->is_broken(); });
    if (lost != 0) ++channel_sequence_;
    if (channels_.empty()) channels_.push_back(oldest);
}

bool session::can_repeat(const connection& over, const client_error& after) noexcept {
    const bool was_lost =
        over.is_broken() and after.which() == client_error::kind::io and after.code() != ECANCELED;
    if (not was_lost) return false;
    forget_lost();
    return not first().is_broken();
}

io::task<bool> session::co_can_repeat(const connection& over, client_error after, request_options& how,
                                      wait_policy& so_far) noexcept {
    if (can_repeat(over, after)) {
        how.is_replay = true;  // the server may have executed it, and only its reply was lost
        co_return true;
    }
    // Before the first loss, this status has another meaning.
    if (after.status() != nt_status::file_not_available or channel_sequence_ == 0) co_return false;
    const dependencies& deps = first().deps();
    const auto now = deps.clock.steady_now();
    if (not so_far.since) so_far.since = now;
    if (now - *so_far.since > limits::repeat_within) co_return false;
    const auto slept = co_await io::co_sleep(deps.loop, so_far.pause);
    so_far.pause = std::min(2 * so_far.pause, limits::repeat_pause_max);
    co_return slept.has_value();
}

io::task<void> session::log_off() noexcept {
    io::task<outcome<reply>> leaving =
        first().call(wire::command::logoff, wire::logoff_args{}, {.step = "log off"});
    (void)co_await std::move(leaving);
}

}  // namespace sluice::smb::client
