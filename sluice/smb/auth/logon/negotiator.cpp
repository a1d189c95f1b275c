#include "sluice/smb/auth/logon/negotiator.hpp"

#include <utility>

#include "sluice/smb/auth/limits.hpp"

namespace sluice::smb::auth {
namespace {

using spnego::mechanism;
using wire::nt_status;

constexpr mechanism ours[] = {mechanism::ntlm};

step_refused refuse(nt_status why, const char* reason) noexcept {
    return {.why = why, .reason = reason};
}

}  // namespace

// --- server side

std::vector<std::byte> negotiator::offer() {
    return spnego::encode_server_offer(ours);
}

step_result negotiator::step(bytes_view token) noexcept {
    const phase now = std::exchange(phase_, phase::over);
    if (token.size() > limits::token_bytes_max) return refuse(nt_status::invalid_parameter, "token too long");
    if (++steps_ > limits::round_trips_max) return refuse(nt_status::invalid_parameter, "too many tokens");

    step_result result = refuse(nt_status::invalid_parameter, "a token after the last");
    phase next = now;
    if (now == phase::first and ntlm::is_ntlm(token)) {
        next = phase::bare;
        result = ntlm_.step(token);
    } else if (now == phase::first) {
        next = phase::spnego;
        result = begin(token);
    } else if (now == phase::bare) {
        result = ntlm_.step(token);
    } else if (now == phase::spnego) {
        result = go_on(token);
    }
    if (std::holds_alternative<step_continue>(result)) phase_ = next;
    return result;
}

step_result negotiator::begin(bytes_view token) {
    const auto init = spnego::decode_init(token);
    if (!init) return refuse(nt_status::invalid_parameter, "neither a SPNEGO token nor an NTLM token");
    if (!init->mechanisms.contains(mechanism::ntlm)) {
        return refuse(nt_status::not_supported, "the client does not offer NTLM");
    }
    mechanism_list_.assign(init->mechanism_list_der.begin(), init->mechanism_list_der.end());
    const bool is_first_choice = init->mechanisms.all().front() == mechanism::ntlm;
    if (is_first_choice and init->mech_token) return wrap(ntlm_.step(*init->mech_token), {});

    // The received token, if any, belongs to another mechanism.
    mic_required_ = !is_first_choice;
    mechanism_was_named_ = true;
    return step_continue{spnego::encode(spnego::neg_token_resp{
        .negotiation_state = mic_required_ ? spnego::state::request_mic : spnego::state::accept_incomplete,
        .supported_mechanism = mechanism::ntlm,
        .response_token = {},
        .mech_list_mic = {}})};
}

step_result negotiator::go_on(bytes_view token) {
    const auto request = spnego::decode_resp(token);
    if (!request) return refuse(nt_status::invalid_parameter, "malformed SPNEGO token");
    if (request->negotiation_state == spnego::state::reject) {
        return refuse(nt_status::logon_failure, "the client ended the negotiation");
    }
    if (!request->response_token) return refuse(nt_status::invalid_parameter, "a SPNEGO token without NTLM");
    return wrap(ntlm_.step(*request->response_token), *request);
}

step_result negotiator::wrap(step_result inner, const spnego::neg_token_resp& request) {
    if (const auto* const more = std::get_if<step_continue>(&inner)) {
        const auto named =
            std::exchange(mechanism_was_named_, true) ? std::nullopt : std::optional(mechanism::ntlm);
        return step_continue{
            spnego::encode(spnego::neg_token_resp{.negotiation_state = spnego::state::accept_incomplete,
                                                  .supported_mechanism = named,
                                                  .response_token = more->token,
                                                  .mech_list_mic = {}})};
    }
    auto* const done = std::get_if<step_done>(&inner);
    if (done == nullptr) return inner;

    spnego::neg_token_resp verdict{.negotiation_state = spnego::state::accept_completed,
                                   .supported_mechanism = {},
                                   .response_token = {},
                                   .mech_list_mic = {}};
    if (!ntlm_.can_sign()) {
        // A MIC of the list needs session security (RFC 4178, section 5): without it, a list in
        // which NTLM is not the first is refused. A list that an attacker has changed so that NTLM
        // is the first needs none, and passes; the MIC of NTLM's own messages, if the client sends
        // one, still reveals an attacker who has removed session security. An anonymous user needs
        // no MIC, because the attacker gains nothing beyond an own anonymous logon.
        if (mic_required_ and not done->is_anonymous) {
            return refuse(
                nt_status::logon_failure,
                "no session security for the MIC of the mechanism list, in which NTLM was not the first");
        }
        if (request.mech_list_mic)
            return refuse(nt_status::invalid_parameter, "MIC of the mechanism list without session security");
        done->token = spnego::encode(verdict);
        return inner;
    }
    if (mic_required_ and !request.mech_list_mic) {
        return refuse(nt_status::logon_failure,
                      "missing MIC of the mechanism list, in which NTLM was not the first");
    }
    ntlm::message_signer::signature mic;
    if (request.mech_list_mic) {
        if (!ntlm_.verify(mechanism_list_, *request.mech_list_mic)) {
            return refuse(nt_status::logon_failure,
                          "wrong MIC of the mechanism list: it was changed in transit");
        }
        mic = ntlm_.sign(mechanism_list_);
        verdict.mech_list_mic = mic;
    }
    done->token = spnego::encode(verdict);
    return inner;
}

// --- client side

step_result initiating_negotiator::step(bytes_view token) noexcept {
    const phase now = std::exchange(phase_, phase::over);
    if (token.size() > limits::token_bytes_max) return refuse(nt_status::invalid_parameter, "token too long");
    if (now == phase::first) return begin(token);
    if (now == phase::over) return refuse(nt_status::invalid_parameter, "a token after the last");

    const auto said = spnego::decode_resp(token);
    if (!said) return refuse(nt_status::invalid_parameter, "malformed SPNEGO token");
    if (said->negotiation_state == spnego::state::reject) {
        return refuse(nt_status::logon_failure, "the server rejected the negotiation");
    }
    return now == phase::challenge ? answer(*said) : conclude(*said);
}

step_result initiating_negotiator::begin(bytes_view offer) {
    if (!offer.empty()) {
        const auto offered = spnego::decode_init(offer);
        if (!offered) return refuse(nt_status::invalid_parameter, "malformed SPNEGO token");
        if (!offered->mechanisms.contains(mechanism::ntlm)) {
            return refuse(nt_status::not_supported, "the server does not offer NTLM");
        }
    }
    step_result inner = ntlm_.step({});
    const auto* const first = std::get_if<step_continue>(&inner);
    if (first == nullptr) return inner;
    mechanism_list_ = spnego::encode_mechanism_list(ours);
    phase_ = phase::challenge;
    return step_continue{spnego::encode(spnego::neg_token_init{.mechanisms = {},
                                                               .mechanism_list_der = mechanism_list_,
                                                               .mech_token = first->token,
                                                               .mech_list_mic = {}})};
}

step_result initiating_negotiator::answer(const spnego::neg_token_resp& token) {
    const bool is_ntlm = !token.supported_mechanism or token.supported_mechanism == mechanism::ntlm;
    if (!is_ntlm or !token.response_token) {
        return refuse(nt_status::invalid_parameter, "the server's token contains no NTLM message");
    }
    step_result inner = ntlm_.step(*token.response_token);
    auto* const done = std::get_if<step_done>(&inner);
    if (done == nullptr) return inner;
    const auto mic = ntlm_.sign(mechanism_list_);
    step_continue last{
        spnego::encode(spnego::neg_token_resp{.negotiation_state = spnego::state::accept_incomplete,
                                              .supported_mechanism = {},
                                              .response_token = done->token,
                                              .mech_list_mic = mic})};
    outcome_ = std::move(*done);
    outcome_->token.clear();
    phase_ = phase::verdict;
    return last;
}

step_result initiating_negotiator::conclude(const spnego::neg_token_resp& token) {
    if (token.negotiation_state != spnego::state::accept_completed) {
        return refuse(nt_status::logon_failure, "the server did not accept the logon");
    }
    if (token.mech_list_mic and !ntlm_.verify(mechanism_list_, *token.mech_list_mic)) {
        return refuse(nt_status::logon_failure, "wrong MIC of the mechanism list: it was changed in transit");
    }
    return std::move(*outcome_);
}

}  // namespace sluice::smb::auth
