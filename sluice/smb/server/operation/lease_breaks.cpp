#include "sluice/smb/server/operation/lease_breaks.hpp"

#include <algorithm>
#include <iterator>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/wire/file/oplock_break.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::nt_status;

namespace {

// Returns an open through which the holder can be notified.
[[nodiscard]] open* reachable(const lease& of) noexcept {
    const auto found = std::ranges::find_if(of.opens, [](const open* one) {
        return one->session != nullptr and one->session->first_channel() != nullptr;
    });
    return found == of.opens.end() ? nullptr : *found;
}

// Whether breaks of it must be encrypted, independently of the session's other messages ([MS-SMB2]
// 3.3.4.1.4).
[[nodiscard]] bool must_encrypt(const lease& of) noexcept {
    return std::ranges::any_of(
        of.opens, [](const open* one) { return one->tree != nullptr and one->tree->requires_encryption; });
}

[[nodiscard]] wire::oplock_break_reply message_of(const lease& of, const open& via,
                                                  const break_notice& notice) noexcept {
    ENSURE(wire::has(notice.from, notice.to) and notice.from != notice.to,
           "a break leaves its holder less than it has");
    if (of.is_oplock()) return {wire::oplock_break{.oplock_level = level_of(notice.to), .file = via.id}};
    const auto flags = notice.needs_answer ? wire::lease_break_flags::acknowledgement_required
                                           : wire::lease_break_flags::none;
    return {wire::lease_break_notification{.new_epoch = of.epoch(),
                                           .flags = flags,
                                           .key = of.who().key,
                                           .current_state = notice.from,
                                           .new_state = notice.to}};
}

// The channels for a break, in the order to try them. The break of an oplock goes to the channel of its
// CREATE first, behind that reply; the break of a lease, to the first channel of its client. Channels that
// have not delivered an earlier break come last.
[[nodiscard]] std::vector<channel*> ways_to(server_context& host, const lease& of, const open& via) {
    const bool needs_cipher = must_encrypt(of);
    const std::vector<std::shared_ptr<session>> sessions =
        of.is_oplock() ? std::vector{host.find_session(via.session->id)} : host.sessions.alike(*via.session);
    std::vector<channel*> ways;
    for (const bool wants_stuck : {false, true})
        for (const std::shared_ptr<session>& one : sessions)
            std::ranges::copy_if(one->channels, std::back_inserter(ways), [=](const channel* way) {
                return way->is_established and not way->connection->is_closing() and
                       way->connection->is_stuck() == wants_stuck and (way->sealer or not needs_cipher);
            });
    const auto opener = std::ranges::find(ways, via.made_on);
    if (of.is_oplock() and opener != ways.end() and not(*opener)->connection->is_stuck())
        std::rotate(ways.begin(), opener, std::next(opener));
    return ways;
}

// A break that was sent, until it has arrived or does not matter any more.
struct telling {
    std::weak_ptr<lease> of;
    std::uint32_t which = 0;  // number among the lease's breaks
    wire::oplock_break_reply message;
    bool needs_answer = false;
    bool must_encrypt = false;
    std::vector<std::weak_ptr<channel>> tried;  // the last of them is in use
    connection::place_in_stream end{};          // end of the message, on that

    // relaxed: a number, that orders nothing.
    [[nodiscard]] std::uint64_t place() const noexcept { return end->load(std::memory_order_relaxed); }
    [[nodiscard]] bool is_over(const lease& now) const noexcept {
        return now.opens.empty() or now.breaks_told != which or (needs_answer and not now.is_breaking());
    }
    [[nodiscard]] bool has_tried(const channel& way) const noexcept {
        return std::ranges::any_of(tried, [&](const auto& before) { return before.lock().get() == &way; });
    }
};

void see_to(server_context& host, telling what) noexcept;

void look_later(server_context& host, telling what) {
    host.later.add(limits::told_again_after,
                   [&host, what = std::move(what)]() mutable noexcept { see_to(host, std::move(what)); });
}

void send_over(server_context& host, telling what, channel& way) {
    ENSURE(way.is_established and way.connection != nullptr, "a break goes to a channel in use");
    what.end = connection::no_place_yet();
    const bool is_sealed = what.must_encrypt or way.session->requires_encryption;
    way.connection->notify(way.shared_from_this(), is_sealed, wire::command::oplock_break, what.message,
                           what.end);
    what.tried.push_back(way.weak_from_this());
    // A client that can have only one channel gets no second attempt.
    if (wire::has(way.session->agreed.capabilities, wire::capabilities::multi_channel))
        look_later(host, std::move(what));
}

// Checks whether it has arrived. If not, and its channel is gone or stuck, sends it on the next one
// ([MS-SMB2] 3.3.4.6, .7).
void see_to(server_context& host, telling what) noexcept {
    ENSURE(host.latch().is_mine() and not what.tried.empty(),
           "a break that was sent is looked after, under the latch");
    const std::shared_ptr<lease> of = what.of.lock();
    if (of == nullptr or what.is_over(*of)) return;
    const std::shared_ptr<channel> way = what.tried.back().lock();
    const bool is_there = way != nullptr and way->connection != nullptr;
    if (is_there and way->connection->has_delivered(what.place())) {
        // The channel may yet be lost with what the client has not looked at.
        if (what.needs_answer) look_later(host, std::move(what));
        return;
    }
    if (is_there) way->connection->note_stuck(what.place());
    const open* const via = reachable(*of);
    if (via == nullptr) return;
    const std::vector<channel*> ways = ways_to(host, *of, *via);
    const auto next =
        std::ranges::find_if_not(ways, [&](const channel* one) { return what.has_tried(*one); });
    if (next != ways.end())
        send_over(host, std::move(what), **next);
    else if (what.needs_answer)
        look_later(host, std::move(what));  // a new channel may come
}

void tell(server_context& host, const std::shared_ptr<lease>& of, const break_notice& notice) {
    const open* const via = reachable(*of);
    if (via == nullptr) return;
    const std::vector<channel*> ways = ways_to(host, *of, *via);
    telling what{.of = of,
                 .which = ++of->breaks_told,
                 .message = message_of(*of, *via, notice),
                 .needs_answer = notice.needs_answer,
                 .must_encrypt = must_encrypt(*of),
                 .tried = {}};
    // Without a channel, the last connection is about to end, and its opens with it.
    if (not ways.empty()) send_over(host, std::move(what), *ways.front());
    if (not notice.needs_answer) return;
    ENSURE(of->is_breaking() and not of->time_limit, "a holder has one time to answer one break");
    of->time_limit = host.later.add(limits::break_within, [&host, held = std::weak_ptr(of)]() noexcept {
        const std::shared_ptr<lease> late = held.lock();
        ENSURE(late != nullptr, "a lease cancels its time limit when it ends");
        late->time_limit.reset();
        take_away(host, *late);
    });
}

void end_opens(server_context& host, const lease& of);

// The reply to an answer is sent before further breaks. In between, the client may have been granted
// more, or a new break may have been sent: then this notification is outdated. `changes` is
// lease::changes() at the time of the answer.
[[nodiscard]] io::task<void> tell_afterwards(server_context& host, std::shared_ptr<lease> of,
                                             break_notice notice, std::uint16_t changes) noexcept {
    io::task<void> turn = next_turn(host.loop());
    co_await unlatched(host.latch(), std::move(turn));
    if (of->changes() != changes) co_return;
    if (of->opens.empty() or (notice.needs_answer and not of->is_breaking())) co_return;
    if (notice.needs_answer and reachable(*of) == nullptr)
        end_opens(host, *of);
    else
        tell(host, of, notice);
}

void end_time_limit(server_context& host, lease& of) noexcept {
    host.later.end(of.time_limit);
}

void wake_waiters(const lease& of) noexcept {
    for (const open* one : of.opens)
        one->file->wake_caching_waiters();
}

// The end of an open can end those of further leases. They wait in the list of the outermost call,
// so that the stack does not grow with the opens of a client; each open once, so that neither does the list.
void end_opens(server_context& host, const lease& of) {
    std::vector<std::shared_ptr<open>>& ending = host.opens_to_end;
    const bool is_outermost = ending.empty();
    for (open* one : of.opens) {
        ENSURE(one->lease.get() == &of, "an open that a lease names has that lease");
        if (one->is_closed or std::exchange(one->is_in_opens_to_end, true)) continue;
        ending.push_back(host.opens.find(one->id));
        ENSURE(ending.back().get() == one, "an open that caches is in the table");
    }
    if (not is_outermost) return;
    for (std::size_t i = 0; i != ending.size(); ++i) {
        const std::shared_ptr<open> one = ending[i];  // the list may grow
        (void)host.functions().end_open(host, *one);
    }
    ending = {};  // with its memory
}

}  // namespace

void ask_to_give_up(server_context& host, const std::shared_ptr<lease>& of, lease_state keep) {
    ENSURE(host.latch().is_mine());
    if (wire::has(keep, of->held())) return;
    if (reachable(*of) == nullptr) {
        end_opens(host, *of);
        return;
    }
    if (const auto notice = of->ask(keep)) tell(host, of, *notice);
}

nt_status take_answer(server_context& host, const std::shared_ptr<lease>& of, lease_state kept) {
    ENSURE(host.latch().is_mine(), "an answer is taken under the latch");
    // A break that was not sent yet has no time limit. An answer to it would end the break, and then
    // begin its time: see tell_afterwards().
    if (of->is_breaking() and not of->time_limit) return nt_status::unsuccessful;
    const lease::answer answer = of->acknowledge(kept);
    if (answer.status != nt_status::success) return answer.status;
    end_time_limit(host, *of);
    wake_waiters(*of);
    if (answer.next) host.background.spawn(tell_afterwards(host, of, *answer.next, of->changes()));
    return nt_status::success;
}

void leave_lease(server_context& host, open& one) noexcept {
    const std::shared_ptr<lease> of = std::exchange(one.lease, nullptr);
    if (of == nullptr) return;
    ENSURE(std::erase(of->opens, &one) == 1, "a lease names each of its opens once");
    if (not of->opens.empty()) return;
    end_time_limit(host, *of);
    if (not of->is_oplock()) host.leases.remove(*of);
}

void take_away(server_context& host, lease& of) noexcept {
    ENSURE(host.latch().is_mine(), "caching ends under the latch");
    end_time_limit(host, of);
    of.time_out();
    wake_waiters(of);
}

}  // namespace sluice::smb::server
