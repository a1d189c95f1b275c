#include "sluice/smb/auth/logon/negotiator.hpp"

#include <gtest/gtest.h>

#include <map>

#include "sluice/smb/auth/hex_testing.hpp"
#include "sluice/smb/auth/limits.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::auth {
namespace {

using spnego::mechanism;
using wire::nt_status;

class fixed_accounts final : public account_source {
public:
    std::optional<account> find(std::string_view user, std::string_view) noexcept override {
        const auto found = passwords.find(std::string(user));
        if (found == passwords.end()) return std::nullopt;
        return account{.hash = nt_hash::of_password(found->second).value(),
                       .is_disabled = user == "disabled",
                       .is_guest = user == "visitor"};
    }
    std::map<std::string, std::string> passwords = {
        {"alice", "secret"}, {"disabled", "secret"}, {"visitor", "secret"}, {"J\u00fcrgen", "Stra\u00dfe"}};
};

class log_on : public testing::Test {
protected:
    static credentials as(std::string user, std::string_view password, std::string domain = "WORKGROUP") {
        return {.user = std::move(user),
                .domain = std::move(domain),
                .workstation = "LAPTOP",
                .target_name = "cifs/server",
                .hash = nt_hash::of_password(password).value()};
    }

    negotiator server() { return {names, accounts, random, clock}; }

    // Exchanges tokens until one side has finished. Returns the results of both sides.
    struct outcome {
        step_result server;
        step_result client;
    };
    outcome talk(const credentials& who) {
        auto accepting = server();
        initiating_negotiator initiating(who, random, clock);
        step_result ours = step_refused{nt_status::success, "no step yet"};
        step_result theirs = initiating.step(negotiator::offer());
        for (int i = 0; i < 8 and std::holds_alternative<step_continue>(theirs); ++i) {
            ours = accepting.step(std::get<step_continue>(theirs).token);
            if (const auto* more = std::get_if<step_continue>(&ours)) theirs = initiating.step(more->token);
            if (const auto* done = std::get_if<step_done>(&ours)) theirs = initiating.step(done->token);
            if (std::holds_alternative<step_refused>(ours)) break;
        }
        return {std::move(ours), std::move(theirs)};
    }

    // The same without SPNEGO.
    outcome talk_bare(const credentials& who) {
        auto accepting = server();
        ntlm_initiator initiating(who, random, clock);
        const auto challenge = accepting.step(std::get<step_continue>(initiating.step({})).token);
        auto theirs = initiating.step(std::get<step_continue>(challenge).token);
        auto ours = accepting.step(std::get<step_done>(theirs).token);
        return {std::move(ours), std::move(theirs)};
    }

    static nt_status refusal(const step_result& result) {
        const auto* const refused = std::get_if<step_refused>(&result);
        return refused == nullptr ? nt_status::success : refused->why;
    }

    server_names names;
    fixed_accounts accounts;
    predictable_secrets_for_simulation random{1};
    simulated_clock clock;
};

TEST_F(log_on, succeeds_with_the_right_password_and_both_have_one_key) {
    for (const bool exchanges_key : {true, false}) {
        for (const char* const domain : {"WORKGROUP", "", "elsewhere"}) {
            auto who = as("alice", "secret", domain);
            who.exchanges_key = exchanges_key;
            for (const bool is_bare : {false, true}) {
                const auto [ours, theirs] = is_bare ? talk_bare(who) : talk(who);
                ASSERT_TRUE(std::holds_alternative<step_done>(ours)) << domain << exchanges_key << is_bare;
                ASSERT_TRUE(std::holds_alternative<step_done>(theirs));
                const auto& done = std::get<step_done>(ours);
                EXPECT_EQ(to_hex(done.key.view()), to_hex(std::get<step_done>(theirs).key.view()));
                EXPECT_EQ(done.user, "alice");
                EXPECT_EQ(done.domain, domain);
                EXPECT_EQ(done.workstation, "LAPTOP");
                EXPECT_FALSE(done.is_guest or done.is_anonymous);
            }
        }
    }
}

TEST_F(log_on, has_another_key_each_time) {
    const auto who = as("alice", "secret");
    const auto first = talk(who);
    const auto second = talk(who);
    EXPECT_NE(to_hex(std::get<step_done>(first.server).key.view()),
              to_hex(std::get<step_done>(second.server).key.view()));
}

TEST_F(log_on, accepts_names_and_passwords_outside_of_ascii) {
    EXPECT_EQ(std::get<step_done>(talk(as("J\u00fcrgen", "Stra\u00dfe")).server).user, "J\u00fcrgen");
}

TEST_F(log_on, fails_alike_for_a_wrong_password_and_an_unknown_user) {
    EXPECT_EQ(refusal(talk(as("alice", "Secret")).server), nt_status::logon_failure);
    EXPECT_EQ(refusal(talk(as("mallory", "secret")).server), nt_status::logon_failure);
    EXPECT_EQ(refusal(talk(as("mallory", "")).server), nt_status::logon_failure);
}

TEST_F(log_on, reports_a_disabled_account_only_with_the_right_password) {
    EXPECT_EQ(refusal(talk(as("disabled", "secret")).server), nt_status::account_disabled);
    EXPECT_EQ(refusal(talk(as("disabled", "wrong")).server), nt_status::logon_failure);
}

TEST_F(log_on, distinguishes_guests_and_anonymous_users) {
    EXPECT_TRUE(std::get<step_done>(talk(as("visitor", "secret")).server).is_guest);

    const credentials nobody{
        .user = "", .domain = "", .workstation = "LAPTOP", .target_name = "", .hash = {}};
    const auto [ours, theirs] = talk(nobody);
    ASSERT_TRUE(std::holds_alternative<step_done>(ours));
    EXPECT_TRUE(std::get<step_done>(ours).is_anonymous);
    EXPECT_EQ(std::get<step_done>(ours).user, "");
}

// The message contains the domain, but the key does not.
TEST_F(log_on, succeeds_for_a_client_that_leaves_the_domain_out_of_the_key) {
    auto accepting = server();
    const auto first = ntlm::encode(ntlm::negotiate_message{.flags = 0xa2080201});
    const auto answered = std::get<step_continue>(accepting.step(first)).token;
    const auto challenge = ntlm::decode_challenge(answered).value();
    const auto user = wire::utf16_of("alice").value();
    const auto domain = wire::utf16_of("WORKGROUP").value();
    const auto pairs = ntlm::av_pair_writer().finish();
    const auto blob = ntlm::encode_client_blob({.pairs = pairs});
    const auto key = ntlm::response_key(nt_hash::of_password("secret").value(), as_bytes(user), {});
    const auto proof = ntlm::proof_of(key, challenge.server_challenge, blob);
    std::vector<std::byte> response(proof.view().begin(), proof.view().end());
    response.insert(response.end(), blob.begin(), blob.end());
    const auto result = accepting.step(ntlm::encode(ntlm::authenticate_message{.flags = challenge.flags,
                                                                               .lm_response = {},
                                                                               .nt_response = response,
                                                                               .domain = as_bytes(domain),
                                                                               .user = as_bytes(user),
                                                                               .workstation = {},
                                                                               .encrypted_session_key = {},
                                                                               .mic = {}}));
    EXPECT_TRUE(std::holds_alternative<step_done>(result));
}

class odd_answer : public log_on {
protected:
    step_result log_on_with(bytes_view lm_response, bytes_view nt_response,
                            std::uint32_t flags = 0xa2080201) {
        auto accepting = server();
        const auto first = ntlm::encode(ntlm::negotiate_message{.flags = flags});
        const auto challenge = accepting.step(first);
        const auto user = wire::utf16_of("alice").value();
        return accepting.step(ntlm::encode(ntlm::authenticate_message{.flags = flags,
                                                                      .lm_response = lm_response,
                                                                      .nt_response = nt_response,
                                                                      .domain = {},
                                                                      .user = as_bytes(user),
                                                                      .workstation = {},
                                                                      .encrypted_session_key = {},
                                                                      .mic = {}}));
    }
};

TEST_F(odd_answer, with_ntlm_v1_or_lm_is_rejected) {
    const std::vector<std::byte> old_answer(24, std::byte{1});
    // With and without session security.
    for (const std::uint32_t flags : {0xa2080201, 0xa2000201}) {
        EXPECT_EQ(refusal(log_on_with(old_answer, old_answer, flags)), nt_status::logon_failure);
        EXPECT_EQ(refusal(log_on_with(old_answer, {}, flags)), nt_status::logon_failure);
    }
}

// The proof and the start of a blob, followed by target information without an end: not a wrong
// password.
TEST_F(odd_answer, with_malformed_ntlm_v2_is_an_invalid_parameter) {
    std::vector<std::byte> broken(95, std::byte{0xab});
    broken[16] = broken[17] = std::byte{1};
    EXPECT_EQ(refusal(log_on_with({}, broken)), nt_status::invalid_parameter);
}

// The client prefers Kerberos and has sent such a token; then a MIC must protect the list.
class reselection : public log_on {
protected:
    step_result finish_with(bool sends_mic, bool changes_list) {
        auto accepting = server();
        const auto who = as("alice", "secret");
        ntlm_initiator client(who, random, clock);
        const auto negotiate = std::get<step_continue>(client.step({})).token;
        const auto sent = spnego::encode_mechanism_list(std::array{mechanism::kerberos, mechanism::ntlm});
        const auto meant = spnego::encode_mechanism_list(
            std::array{mechanism::kerberos_as_by_2k, mechanism::kerberos, mechanism::ntlm});
        const auto kerberos_token = from_hex("6e8201");

        const auto reply = accepting.step(spnego::encode(spnego::neg_token_init{.mechanisms = {},
                                                                                .mechanism_list_der = sent,
                                                                                .mech_token = kerberos_token,
                                                                                .mech_list_mic = {}}));
        const auto chosen = spnego::decode_resp(std::get<step_continue>(reply).token).value();
        EXPECT_EQ(chosen.negotiation_state, spnego::state::request_mic);
        EXPECT_EQ(chosen.supported_mechanism, mechanism::ntlm);

        const auto challenge = accepting.step(wrapped(negotiate, std::nullopt));
        const auto resp = spnego::decode_resp(std::get<step_continue>(challenge).token).value();
        auto done = client.step(*resp.response_token);
        const auto mic = client.sign(changes_list ? meant : sent);
        auto verdict = accepting.step(wrapped(std::get<step_done>(done).token,
                                              sends_mic ? std::optional<bytes_view>(mic) : std::nullopt));
        if (const auto* accepted = std::get_if<step_done>(&verdict)) {
            const auto last = spnego::decode_resp(accepted->token).value();
            EXPECT_EQ(last.negotiation_state, spnego::state::accept_completed);
            EXPECT_TRUE(client.verify(sent, last.mech_list_mic.value()));
        }
        return verdict;
    }

    static std::vector<std::byte> wrapped(bytes_view token, std::optional<bytes_view> mic) {
        return spnego::encode(spnego::neg_token_resp{.negotiation_state = {},
                                                     .supported_mechanism = {},
                                                     .response_token = token,
                                                     .mech_list_mic = mic});
    }
};

TEST_F(reselection, succeeds_with_a_right_mic_and_answers_it) {
    EXPECT_TRUE(std::holds_alternative<step_done>(finish_with(true, false)));
}

TEST_F(reselection, fails_without_a_mic_or_with_one_of_another_list) {
    EXPECT_EQ(refusal(finish_with(false, false)), nt_status::logon_failure);
    EXPECT_EQ(refusal(finish_with(true, true)), nt_status::logon_failure);
}

// Samba's clients disable session security, signing and key exchange for an anonymous logon.
class nobody : public reselection {
protected:
    step_result log_on(mechanism first_choice, std::optional<bytes_view> mic) {
        auto accepting = server();
        const auto negotiate = ntlm::encode(ntlm::negotiate_message{.flags = 0xe2088215});
        const auto list = spnego::encode_mechanism_list(std::array{first_choice, mechanism::ntlm});
        const auto chosen = accepting.step(spnego::encode(spnego::neg_token_init{
            .mechanisms = {}, .mechanism_list_der = list, .mech_token = negotiate, .mech_list_mic = {}}));
        EXPECT_TRUE(std::holds_alternative<step_continue>(chosen));
        if (first_choice != mechanism::ntlm) (void)accepting.step(wrapped(negotiate, std::nullopt));
        // Anonymous, Unicode.
        const auto last = ntlm::encode(ntlm::authenticate_message{.flags = 0x00000a01,
                                                                  .lm_response = {},
                                                                  .nt_response = {},
                                                                  .domain = {},
                                                                  .user = {},
                                                                  .workstation = {},
                                                                  .encrypted_session_key = {},
                                                                  .mic = {}});
        return accepting.step(wrapped(last, mic));
    }
};

TEST_F(nobody, logs_on_without_session_security_and_gets_no_mic) {
    for (const mechanism first_choice : {mechanism::ntlm, mechanism::kerberos}) {
        const auto result = log_on(first_choice, std::nullopt);
        const auto* const done = std::get_if<step_done>(&result);
        ASSERT_NE(done, nullptr);
        EXPECT_TRUE(done->is_anonymous);
        const auto verdict = spnego::decode_resp(done->token).value();
        EXPECT_EQ(verdict.negotiation_state, spnego::state::accept_completed);
        EXPECT_FALSE(verdict.mech_list_mic);
    }
}

TEST_F(nobody, is_rejected_with_a_mic_without_session_security) {
    const std::array<std::byte, 16> made_up{};
    EXPECT_EQ(refusal(log_on(mechanism::ntlm, made_up)), nt_status::invalid_parameter);
    EXPECT_EQ(refusal(log_on(mechanism::kerberos, made_up)), nt_status::invalid_parameter);
}

// A client without extended session security: one in JavaScript, or one whose flag an attacker in
// the middle has removed.
class without_session_security : public reselection {
protected:
    static constexpr std::uint32_t flags = 0xa2000201;
    static constexpr std::uint32_t session_security = 0x00080000;

    struct client {
        std::uint32_t offered_flags = flags;  // in the NEGOTIATE message of the client itself
        std::uint32_t last_flags = flags;
        bool announces_mic = false;
        std::uint8_t mic_error = 0;
    };

    // Returns the AUTHENTICATE message of alice, and her key.
    static std::vector<std::byte> answer(const client& of, bytes_view challenge, session_key& key) {
        const auto negotiate = ntlm::encode(ntlm::negotiate_message{.flags = of.offered_flags});
        const auto said = ntlm::decode_challenge(challenge).value();
        const auto user = wire::utf16_of("alice").value();
        const le32 av_flags(of.announces_mic ? ntlm::av_flag_has_mic : 0);
        const auto pairs = ntlm::av_pair_writer().add(ntlm::av_id::flags, bytes_of(av_flags)).finish();
        const auto blob = ntlm::encode_client_blob({.pairs = pairs});
        const auto response_key =
            ntlm::response_key(nt_hash::of_password("secret").value(), as_bytes(user), {});
        const auto proof = ntlm::proof_of(response_key, said.server_challenge, blob);
        std::vector<std::byte> response(proof.view().begin(), proof.view().end());
        response.insert(response.end(), blob.begin(), blob.end());
        key = ntlm::session_base_key(response_key, proof.view());
        const auto message = [&](std::optional<ntlm::mic_bytes> mic) {
            return ntlm::encode(ntlm::authenticate_message{.flags = of.last_flags,
                                                           .lm_response = {},
                                                           .nt_response = response,
                                                           .domain = {},
                                                           .user = as_bytes(user),
                                                           .workstation = {},
                                                           .encrypted_session_key = {},
                                                           .mic = mic});
        };
        const auto unsigned_message = message(ntlm::mic_bytes{});
        const auto digest = ntlm::mic_of(
            key, {.negotiate = negotiate, .challenge = challenge, .authenticate = unsigned_message});
        ntlm::mic_bytes mic{};
        std::ranges::copy(digest.view(), mic.begin());
        mic[0] ^= std::byte{of.mic_error};
        return message(mic);
    }

    // The server receives these flags in the NEGOTIATE message, whatever the client has sent.
    step_result log_on_bare(const client& of, std::uint32_t received_flags = flags) {
        auto accepting = server();
        const auto challenge = accepting.step(ntlm::encode(ntlm::negotiate_message{.flags = received_flags}));
        const auto* const more = std::get_if<step_continue>(&challenge);
        if (more == nullptr) return step_refused{.why = refusal(challenge), .reason = "no challenge"};
        return accepting.step(answer(of, more->token, key));
    }

    step_result log_on_by_spnego(mechanism first_choice, std::optional<bytes_view> list_mic) {
        auto accepting = server();
        const auto negotiate = ntlm::encode(ntlm::negotiate_message{.flags = flags});
        const auto list = spnego::encode_mechanism_list(std::array{first_choice, mechanism::ntlm});
        auto reply = accepting.step(spnego::encode(spnego::neg_token_init{
            .mechanisms = {}, .mechanism_list_der = list, .mech_token = negotiate, .mech_list_mic = {}}));
        if (first_choice != mechanism::ntlm) reply = accepting.step(wrapped(negotiate, std::nullopt));
        const auto* const more = std::get_if<step_continue>(&reply);
        if (more == nullptr) return step_refused{.why = refusal(reply), .reason = "no challenge"};
        const auto challenge = spnego::decode_resp(more->token).value();
        return accepting.step(wrapped(answer({}, *challenge.response_token, key), list_mic));
    }

    session_key key;
};

TEST_F(without_session_security, a_client_logs_on_with_ntlm_v2_and_has_the_key) {
    const auto bare = log_on_bare({});
    ASSERT_TRUE(std::holds_alternative<step_done>(bare));
    EXPECT_EQ(std::get<step_done>(bare).user, "alice");
    EXPECT_EQ(to_hex(std::get<step_done>(bare).key.view()), to_hex(key.view()));

    const auto wrapped_done = log_on_by_spnego(mechanism::ntlm, std::nullopt);
    ASSERT_TRUE(std::holds_alternative<step_done>(wrapped_done));
    EXPECT_EQ(to_hex(std::get<step_done>(wrapped_done).key.view()), to_hex(key.view()));
    EXPECT_FALSE(spnego::decode_resp(std::get<step_done>(wrapped_done).token).value().mech_list_mic);
}

TEST_F(without_session_security, a_user_whose_list_needs_a_mic_is_rejected) {
    const std::array<std::byte, 16> made_up{};
    EXPECT_EQ(refusal(log_on_by_spnego(mechanism::kerberos, std::nullopt)), nt_status::logon_failure);
    EXPECT_TRUE(std::holds_alternative<step_refused>(log_on_by_spnego(mechanism::kerberos, made_up)));
    EXPECT_EQ(refusal(log_on_by_spnego(mechanism::ntlm, made_up)), nt_status::invalid_parameter);
}

TEST_F(without_session_security, a_mic_of_the_messages_is_checked_if_the_client_announces_it) {
    EXPECT_TRUE(std::holds_alternative<step_done>(log_on_bare({.announces_mic = true})));
    EXPECT_EQ(refusal(log_on_bare({.announces_mic = true, .mic_error = 1})), nt_status::logon_failure);
}

TEST_F(without_session_security, an_attacker_who_removes_the_flag_is_noticed_by_the_mic_of_the_messages) {
    const client victim{.offered_flags = flags | session_security, .announces_mic = true};
    EXPECT_EQ(refusal(log_on_bare(victim)), nt_status::logon_failure);
}

// The client sends the flag in its last message, too: both sides must have it.
TEST_F(without_session_security, a_flag_that_only_the_last_message_has_is_ignored) {
    EXPECT_TRUE(std::holds_alternative<step_done>(log_on_bare({.last_flags = flags | session_security})));
}

// As v9u-smb2 does: it offers OEM only, and follows the challenge.
TEST_F(without_session_security, a_client_that_offers_no_unicode_is_answered_in_unicode) {
    constexpr std::uint32_t oem_only = 0x00008206;
    EXPECT_TRUE(std::holds_alternative<step_done>(log_on_bare({.offered_flags = oem_only}, oem_only)));
    auto accepting = server();
    const auto challenge = accepting.step(ntlm::encode(ntlm::negotiate_message{.flags = oem_only}));
    const auto said = ntlm::decode_challenge(std::get<step_continue>(challenge).token).value();
    EXPECT_EQ(said.flags & 3, ntlm::flag::unicode);
}

// As node-smb2 does.
TEST_F(without_session_security, a_client_whose_last_message_has_no_flags_logs_on) {
    EXPECT_TRUE(std::holds_alternative<step_done>(log_on_bare({.last_flags = 0})));
    EXPECT_TRUE(std::holds_alternative<step_done>(log_on_bare({.last_flags = 0}, flags | session_security)));
}

// Flips every bit of the last message, within SPNEGO and NTLM. A changed message must not be
// accepted as another one.
TEST_F(log_on, with_any_bit_of_the_last_token_flipped_never_gives_another_session) {
    const auto who = as("alice", "secret");
    std::size_t accepted = 0;
    std::vector<std::byte> original;
    for (std::size_t bit = 0; original.empty() or bit < 8 * original.size(); ++bit) {
        predictable_secrets_for_simulation same(7);
        negotiator accepting(names, accounts, same, clock);
        predictable_secrets_for_simulation client_secrets(8);
        initiating_negotiator client(who, client_secrets, clock);
        const auto challenge = accepting.step(std::get<step_continue>(client.step({})).token);
        auto last = std::get<step_continue>(client.step(std::get<step_continue>(challenge).token)).token;
        original = last;
        last[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
        const auto result = accepting.step(last);
        if (!std::holds_alternative<step_done>(result)) continue;
        // Only the SPNEGO state, which has no meaning in a client's token, is not protected by a
        // MIC.
        ++accepted;
        EXPECT_EQ(std::get<step_done>(result).user, "alice") << bit;
        EXPECT_LT(bit / 8, 20u);
    }
    EXPECT_LE(accepted, 2u);
}

TEST_F(log_on, with_a_truncated_last_token_fails) {
    const auto who = as("alice", "secret");
    ntlm_initiator client(who, random, clock);
    const auto first = std::get<step_continue>(client.step({})).token;
    auto accepting = server();
    const auto challenge = accepting.step(first);
    const auto last = std::get<step_done>(client.step(std::get<step_continue>(challenge).token)).token;
    for (std::size_t size = 0; size < last.size(); ++size) {
        auto another = server();
        ASSERT_TRUE(std::holds_alternative<step_continue>(another.step(first)));
        EXPECT_TRUE(std::holds_alternative<step_refused>(another.step(*bytes_view(last).first(size))))
            << size;
    }
}

TEST_F(log_on, accepts_nothing_after_its_end) {
    const auto who = as("alice", "secret");
    auto accepting = server();
    ntlm_initiator client(who, random, clock);
    const auto first = std::get<step_continue>(client.step({})).token;
    const auto challenge = accepting.step(first);
    const auto last = std::get<step_done>(client.step(std::get<step_continue>(challenge).token)).token;
    ASSERT_TRUE(std::holds_alternative<step_done>(accepting.step(last)));
    EXPECT_EQ(refusal(accepting.step(last)), nt_status::invalid_parameter);
    EXPECT_EQ(refusal(accepting.step(first)), nt_status::invalid_parameter);
}

TEST_F(log_on, rejects_invalid_tokens_and_clients_without_ntlm) {
    EXPECT_EQ(refusal(server().step({})), nt_status::invalid_parameter);
    EXPECT_EQ(refusal(server().step(as_bytes("hello"))), nt_status::invalid_parameter);
    EXPECT_EQ(refusal(server().step(std::vector<std::byte>(limits::token_bytes_max + 1))),
              nt_status::invalid_parameter);
    EXPECT_EQ(refusal(server().step(spnego::encode_server_offer(std::array{mechanism::kerberos}))),
              nt_status::not_supported);
}

TEST_F(log_on, a_client_rejects_a_server_that_does_not_offer_ntlm) {
    const auto who = as("alice", "secret");
    initiating_negotiator client(who, random, clock);
    EXPECT_EQ(refusal(client.step(spnego::encode_server_offer(std::array{mechanism::kerberos}))),
              nt_status::not_supported);
}

TEST_F(log_on, a_client_rejects_a_challenge_or_a_name_that_is_too_long) {
    const std::vector<std::byte> long_value(60'000);
    const auto info = ntlm::av_pair_writer().add(ntlm::av_id::dns_domain, long_value).finish();
    const auto challenge = ntlm::encode(ntlm::challenge_message{
        .flags = 0xe2888215, .server_challenge = {}, .target_name = {}, .target_info = info});
    const auto who = as("alice", "secret");
    ntlm_initiator client(who, random, clock);
    ASSERT_TRUE(std::holds_alternative<step_continue>(client.step({})));
    EXPECT_EQ(refusal(client.step(challenge)), nt_status::invalid_parameter);
    EXPECT_EQ(refusal(talk(as(std::string(40'000, 'a'), "secret")).client), nt_status::invalid_parameter);
}

TEST_F(log_on, a_client_notices_a_verdict_with_a_wrong_mic) {
    const auto who = as("alice", "secret");
    auto accepting = server();
    initiating_negotiator client(who, random, clock);
    const auto challenge = accepting.step(std::get<step_continue>(client.step({})).token);
    const auto last = std::get<step_continue>(client.step(std::get<step_continue>(challenge).token)).token;
    auto verdict = std::get<step_done>(accepting.step(last)).token;
    verdict[verdict.size() - 8] ^= std::byte{1};
    EXPECT_EQ(refusal(client.step(verdict)), nt_status::logon_failure);
}

}  // namespace
}  // namespace sluice::smb::auth
