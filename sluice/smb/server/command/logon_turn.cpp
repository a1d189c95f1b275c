#include "sluice/smb/server/command/logon_turn.hpp"

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/session_life.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

// A client may begin many sessions while its attempts are rejected.
void end_if_in_progress(request& r) noexcept {
    if (r.session != nullptr) end_session_in_progress(r.host(), *r.session);
}

// Signed with the key of the session that it is about, so that its sender has a password already;
// unless it tries others. One wrong proof is enough for all sessions of the user: a new one, after
// all of them have ended, waits for its turn.
[[nodiscard]] bool is_of_known_client(const request& r) noexcept {
    if (not r.is_reply_signed() and not r.knows_session_key and r.encrypted_by == nullptr) return false;
    const std::shared_ptr<session> of = r.host().find_session(r.header().session_id);
    if (of == nullptr) return false;
    const session::phase now = of->state();
    const bool has_client = now == session::phase::valid or now == session::phase::expired;
    return has_client and of->admitted.client.failed_proofs() == 0;
}

[[nodiscard]] std::optional<session::phase> phase_of(const request& r) noexcept {
    return r.session != nullptr ? std::optional<session::phase>(r.session->state()) : std::nullopt;
}

}  // namespace

io::task<nt_status> wait_for_logon_turn(request& r, logon_throttle::admission& entered) noexcept {
    server_context& host = r.host();
    if (is_of_known_client(r)) co_return nt_status::success;
    entered = host.logons.enter(r.connection().peer());
    if (entered.is_immediate) co_return nt_status::success;
    if (not entered.waiting) {
        end_if_in_progress(r);
        co_return nt_status::request_not_accepted;
    }
    const std::optional<session::phase> before = phase_of(r);
    for (;;) {
        const std::chrono::milliseconds pause = host.logons.wait_for(*entered.waiting);
        if (pause == pause.zero()) break;
        const deadline until(pause);
        io::task<bool> sleeping = pass(r.loop(), until);
        const bool has_slept = co_await within_work(std::move(sleeping));
        const bool is_alone = r.channel != nullptr and r.channel->has_ended();
        // Whether the request was allowed was decided for the session as it was then.
        if (not has_slept or r.interrupted() or r.connection().is_closing() or is_alone or
            phase_of(r) != before)
            co_return nt_status::user_session_deleted;
    }
    co_return nt_status::success;
}

}  // namespace sluice::smb::server
