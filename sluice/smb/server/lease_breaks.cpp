#include "sluice/smb/server/lease_breaks.hpp"

#include <algorithm>

#include "sluice/smb/server/closing.hpp"
#include "sluice/smb/server/connection.hpp"
#include "sluice/smb/server/server.hpp"
#include "sluice/smb/wire/oplock_break.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::nt_status;

namespace {

// An open through which the holder can be told.
[[nodiscard]] open* reachable(const lease& of) noexcept {
    const auto found = std::ranges::find_if(of.opens, [](const open* one) {
        return one->session != nullptr and one->session->connection != nullptr;
    });
    return found == of.opens.end() ? nullptr : *found;
}

[[nodiscard]] wire::oplock_break_reply message_of(const lease& of, const open& via,
                                                  const break_notice& notice) noexcept {
    if (of.is_oplock()) return {wire::oplock_break{.oplock_level = level_of(notice.to), .file = via.id}};
    const auto flags = notice.needs_answer ? wire::lease_break_flags::acknowledgement_required
                                           : wire::lease_break_flags::none;
    return {wire::lease_break_notification{.new_epoch = of.epoch(),
                                           .flags = flags,
                                           .key = of.who().key,
                                           .current_state = notice.from,
                                           .new_state = notice.to}};
}

void tell(smb_server& host, const std::shared_ptr<lease>& of, const break_notice& notice) {
    open* const via = reachable(*of);
    if (via == nullptr) return;
    // An oplock is its open's; a lease is its client's, who hears of it on the first of its connections.
    session* const to = of->is_oplock() ? via->session : &host.first_session_like(*via->session);
    to->connection->notify(to, wire::command::oplock_break, message_of(*of, *via, notice));
    if (not notice.needs_answer) return;
    of->time_limit = host.later.add(limits::break_within, [&host, held = std::weak_ptr(of)]() noexcept {
        const std::shared_ptr<lease> late = held.lock();
        ENSURE(late != nullptr, "a lease strikes its time limit out when it ends");
        late->time_limit.reset();
        take_away(host, *late);
    });
}

// The reply to an answer comes before what else there is to say.
[[nodiscard]] io::task<void> tell_afterwards(smb_server& host, std::shared_ptr<lease> of,
                                             break_notice notice) noexcept {
    io::task<void> turn = next_turn(host.loop());
    co_await unlatched(host.latch(), std::move(turn));
    if (not of->opens.empty()) tell(host, of, notice);
}

void end_time_limit(smb_server& host, lease& of) noexcept {
    if (of.time_limit) host.later.strike_out(*std::exchange(of.time_limit, std::nullopt));
}

void wake_waiters(const lease& of) noexcept {
    if (not of.opens.empty()) of.opens.front()->file->wake_caching_waiters();
}

void end_opens(smb_server& host, const lease& of) {
    std::vector<std::shared_ptr<open>> ending;
    for (const open* one : of.opens)
        ending.push_back(host.opens.find(one->id));
    for (const std::shared_ptr<open>& one : ending)
        (void)end_open(host, *one);
}

}  // namespace

void ask_to_give_up(smb_server& host, const std::shared_ptr<lease>& of, lease_state keep) {
    ENSURE(host.latch().is_mine());
    if (wire::has(keep, of->held())) return;
    if (reachable(*of) == nullptr) {
        end_opens(host, *of);
        return;
    }
    if (const auto notice = of->ask(keep)) tell(host, of, *notice);
}

nt_status take_answer(smb_server& host, const std::shared_ptr<lease>& of, lease_state kept) {
    const lease::answer answer = of->acknowledge(kept);
    if (answer.status != nt_status::success) return answer.status;
    end_time_limit(host, *of);
    wake_waiters(*of);
    if (answer.next) host.background.spawn(tell_afterwards(host, of, *answer.next));
    return nt_status::success;
}

void leave_lease(smb_server& host, open& one) noexcept {
    const std::shared_ptr<lease> of = std::exchange(one.lease, nullptr);
    if (of == nullptr) return;
    std::erase(of->opens, &one);
    if (not of->opens.empty()) return;
    end_time_limit(host, *of);
    if (not of->is_oplock()) host.leases.remove(*of);
}

void take_away(smb_server& host, lease& of) noexcept {
    end_time_limit(host, of);
    of.time_out();
    wake_waiters(of);
}

}  // namespace sluice::smb::server
