#include "sluice/smb/server/operation/lease_breaks.hpp"

#include <algorithm>
#include <iterator>

#include "sluice/smb/server/net/connection.hpp"
#include "sluice/smb/server/net/server_context.hpp"
#include "sluice/smb/server/operation/persistent_opens.hpp"

namespace sluice::smb::server {

using wire::lease_state;
using wire::nt_status;

namespace {

// The holder's client: the session of one of the opens that has an established channel.
[[nodiscard]] std::shared_ptr<session> reachable(const std::vector<std::shared_ptr<open>>& opens) noexcept {
    for (const std::shared_ptr<open>& one : opens)
        if (std::shared_ptr<session> of = one->session(); of != nullptr and of->first_channel() != nullptr)
            return of;
    return nullptr;
}

// Whether breaks of it must be encrypted, independently of the session's other messages ([MS-SMB2]
// 3.3.4.1.4).
[[nodiscard]] bool must_encrypt(const open& one) noexcept {
    return one.through != nullptr and one.through->configuration().encryption == protection::required;
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

// The channels for a break, in the order to try them. The break of an oplock goes to the channel of
// its CREATE first, behind that reply; the break of a lease, to the first channel of its client.
// Channels that have not delivered an earlier break come last.
[[nodiscard]] std::vector<std::shared_ptr<channel>> channels_to(server_context& host,
                                                                const std::shared_ptr<session>& via,
                                                                bool is_oplock, const channel* opener,
                                                                bool needs_cipher) {
    const std::vector<std::shared_ptr<session>> sessions =
        is_oplock ? std::vector{via} : host.sessions.alike(*via);
    std::vector<std::shared_ptr<channel>> all;
    std::vector<std::shared_ptr<channel>> undelivered;
    for (const std::shared_ptr<session>& one : sessions)
        for (const std::shared_ptr<channel>& way : one->channels()) {
            const bool is_usable = way->is_established() and not way->connection->is_closing() and
                                   (way->sealer or not needs_cipher);
            if (is_usable) (way->connection->has_undelivered() ? undelivered : all).push_back(way);
        }
    all.insert(all.end(), undelivered.begin(), undelivered.end());
    const auto first =
        std::ranges::find_if(all, [&](const auto& way) { return is_oplock and way.get() == opener; });
    if (first != all.end() and not(*first)->connection->has_undelivered())
        std::rotate(all.begin(), first, std::next(first));
    return all;
}

// A break that was sent, until it has arrived or does not matter any more.
struct break_delivery {
    std::weak_ptr<lease> of;
    std::uint32_t which = 0;  // number among the lease's breaks
    wire::oplock_break_reply message{wire::oplock_break{}};
    bool needs_answer = false;
    bool must_encrypt = false;
    std::vector<std::weak_ptr<channel>> tried{};  // the last of them is in use
    connection::place_in_stream end{};            // end of the message, on that

    // relaxed: a number, that orders nothing.
    [[nodiscard]] std::uint64_t place() const noexcept { return end->load(std::memory_order_relaxed); }
    [[nodiscard]] bool is_over(const lease& now) const noexcept {
        return now.opens.empty() or now.breaks_decided != which or (needs_answer and not now.is_breaking());
    }
    [[nodiscard]] bool has_tried(const channel& way) const noexcept {
        return std::ranges::any_of(tried, [&](const auto& before) { return before.lock().get() == &way; });
    }
};

void check_delivery(server_context& host, break_delivery what) noexcept;

void check_later(server_context& host, break_delivery what) {
    host.later.add(limits::break_resend_delay, [&host, what = std::move(what)]() mutable noexcept {
        check_delivery(host, std::move(what));
    });
}

void send_over(server_context& host, break_delivery what, const std::shared_ptr<channel>& way,
               pending_break counted) {
    what.end = connection::no_place_yet();
    const bool is_encrypted = what.must_encrypt or way->session->requires_encryption;
    connection::notify(way, is_encrypted, wire::command::oplock_break, what.message, what.end,
                       std::move(counted));
    what.tried.push_back(way);
    // A client that can have only one channel gets no second attempt.
    if (wire::has(way->session->agreed.capabilities, wire::capabilities::multi_channel))
        check_later(host, std::move(what));
}

// The opens that have a lease, for a caller outside its section.
[[nodiscard]] std::vector<std::shared_ptr<open>> opens_of(const lease& of) {
    std::vector<std::shared_ptr<open>> opens;
    opens.reserve(of.opens.size());
    for (open* const one : of.opens) {
        ENSURE(one->file == of.file, "the opens of a lease are of its file");
        opens.push_back(one->shared_from_this());
    }
    return opens;
}

// The break has not arrived, and its channel is gone or delivers nothing: sends it on the next one.
void try_next(server_context& host, break_delivery what) noexcept {
    const std::shared_ptr<lease> of = what.of.lock();
    if (of == nullptr) return;
    std::vector<std::shared_ptr<open>> opens;
    {
        const file_section held(*of->file);
        if (what.is_over(*of)) return;
        opens = opens_of(*of);
        ENSURE(not opens.empty(), "a break that is not over has a holder");
    }
    const std::shared_ptr<session> via = reachable(opens);
    if (via == nullptr) return;
    const auto ways =
        channels_to(host, via, of->is_oplock(), opens.front()->create_reply_channel(), what.must_encrypt);
    const auto next = std::ranges::find_if_not(ways, [&](const auto& one) { return what.has_tried(*one); });
    if (next != ways.end())
        send_over(host, std::move(what), *next, {});
    else if (what.needs_answer)
        check_later(host, std::move(what));  // a new channel may come
}

// Checks whether it has arrived. If not, and its channel is gone or delivers nothing, sends it on
// the next one ([MS-SMB2] 3.3.4.6, .7).
void check_delivery(server_context& host, break_delivery what) noexcept {
    ENSURE(not what.tried.empty(), "a break that was sent is looked after");
    const std::shared_ptr<lease> of = what.of.lock();
    if (of == nullptr) return;
    {
        const file_section held(*of->file);
        if (what.is_over(*of)) return;
    }
    const std::shared_ptr<channel> way = what.tried.back().lock();
    if (way == nullptr or way->has_ended()) return try_next(host, std::move(what));
    way->connection->at_home([&host, what = std::move(what)](replier* on) mutable noexcept {
        if (connection* const home = static_cast<connection*>(on)) {
            if (home->has_delivered(what.place())) {
                // The channel may yet be lost with what the client has not looked at.
                if (what.needs_answer) check_later(host, std::move(what));
                return;
            }
            home->record_undelivered(what.place());
        }
        try_next(host, std::move(what));
    });
}

// The answer to a break is late.
void end_late(const std::weak_ptr<lease>& which, std::uint32_t number) noexcept {
    const std::shared_ptr<lease> late = which.lock();
    if (late == nullptr) return;
    const file_section held(*late->file);
    // Another break, or none, is in progress by now.
    if (late->breaks_decided != number or not late->is_breaking() or not late->time_limit) return;
    late->time_limit.reset();
    // The reply that grants the caching is still to be sent. The notification after it says
    // that nothing is left.
    if (late->parked)
        late->parked =
            break_notice{.from = late->parked->from, .to = lease_state::none, .needs_answer = false};
    late->time_out();
    record_lease(held, *late);
    ENSURE(late->held() == lease_state::none, "a holder that is late has nothing any more");
    late->file->wake_caching_waiters(held);
}

// Begins the time limit of a break that needs an answer, or begins it again. Returns false
// if that is outdated.
[[nodiscard]] bool begin_time_limit(server_context& host, const std::shared_ptr<lease>& of,
                                    std::uint32_t number) {
    std::optional<timer_queue::entry> limit = host.later.add(
        limits::break_within, [which = std::weak_ptr(of), number]() noexcept { end_late(which, number); });
    bool is_current = false;
    {
        const file_section held(*of->file);
        is_current = not of->opens.empty() and of->breaks_decided == number and of->is_breaking();
        if (is_current) std::swap(limit, of->time_limit);
        ENSURE(not is_current or of->time_limit, "a break that is current has a time limit");
    }
    host.later.end(limit);
    return is_current;
}

}  // namespace

decided_breaks::decision decided_breaks::describe(const file_section& held,
                                                  const std::shared_ptr<lease>& of) {
    ENSURE(held.is_of(*of->file), "a file is used in a section of its own");
    ENSURE(not of->opens.empty(), "a lease ends with its last open");
    decision made;
    made.of = of;
    made.opens = opens_of(*of);
    made.must_encrypt = std::ranges::any_of(made.opens, [](const auto& one) { return must_encrypt(*one); });
    made.which = of->breaks_decided;
    of->is_being_sent = true;
    return made;
}

void decided_breaks::add(const file_section& held, server_context& host, const std::shared_ptr<lease>& of,
                         lease_state keep) {
    if (wire::has(keep, of->held())) return;
    if (is_of_absent_client(held, *of)) return yield(held, host, of, keep);
    const auto notice = of->ask(keep);
    record_lease(held, *of);
    if (notice) ++of->breaks_decided;
    if (notice and of->unsent_grants == 0) return add_notice(held, host, of, *notice);
    if (notice) of->parked = *notice;
    // The notification is about to be sent, or has no answer yet: perhaps the holder cannot
    // be reached any more.
    if (not notice and of->is_being_sent) return;
    decided_.push_back(describe(held, of));
    decided_.back().notice = notice;
    decided_.back().is_parked = notice.has_value();
}

// No client can answer. The persistent opens stay; those that are only durable end.
void decided_breaks::yield(const file_section& held, server_context& host, const std::shared_ptr<lease>& of,
                           lease_state keep) {
    of->yield(keep);
    end_break_of_absent_client(held, host, *of);
    const bool all_stay = std::ranges::all_of(of->opens, &open::is_persistent);
    if (not all_stay and not of->is_being_sent) decided_.push_back(describe(held, of));
}

void decided_breaks::add_parked(const file_section& held, server_context& host,
                                const std::shared_ptr<lease>& of) {
    ENSURE(held.is_of(*of->file), "a file is used in a section of its own");
    const std::optional<break_notice> parked = std::exchange(of->parked, std::nullopt);
    if (not parked or of->opens.empty()) return;
    if (not parked->needs_answer or of->is_breaking()) add_notice(held, host, of, *parked);
}

void decided_breaks::add_notice(const file_section& held, server_context& host,
                                const std::shared_ptr<lease>& of, const break_notice& notice) {
    ENSURE(of->unsent_grants == 0, "a break follows the replies that grant the lease");
    decision made = describe(held, of);
    made.notice = notice;
    made.message = message_of(*of, *made.opens.front(), notice);
    if (host.loops().size() != 1) made.counted = pending_break(host.breaks);
    decided_.push_back(std::move(made));
}

// An open that has come back to its client in the meantime, or has gone to another session, stays.
bool decided_breaks::end_opens(server_context& host, const decision& of) noexcept {
    ENSURE(outermost_ != nullptr, "opens end in the outermost call");
    bool has_ended_any = false;
    for (const std::shared_ptr<open>& one : of.opens) {
        if (one->is_persistent()) continue;
        const std::shared_ptr<session> by = one->session();
        if (by == nullptr or by->first_channel() == nullptr)
            has_ended_any |= host.functions().end_open_of(host, *one, by.get());
    }
    return has_ended_any;
}

// Returns whether opens have ended.
bool decided_breaks::send_or_end(server_context& host, decision& one) noexcept {
    bool has_ended_any = false;
    std::shared_ptr<session> via = reachable(one.opens);
    const auto is_left = [](const auto& each) { return not each->has_ended() and not each->is_persistent(); };
    // Each turn ends an open, or finds that one has come back.
    for (unsigned turns = 0;
         via == nullptr and std::ranges::any_of(one.opens, is_left) and turns != limits::open_attempts_max;
         ++turns) {
        has_ended_any |= end_opens(host, one);
        via = reachable(one.opens);
    }
    {
        const file_section held(*one.of->file);
        ENSURE(one.which <= one.of->breaks_decided, "a break has the number of its decision");
        one.of->is_being_sent = false;
    }
    if (via == nullptr or not one.notice) return has_ended_any;
    if (one.notice->needs_answer and not begin_time_limit(host, one.of, one.which)) return has_ended_any;
    if (one.is_parked) return has_ended_any;
    const auto ways = channels_to(host, via, one.of->is_oplock(), one.opens.front()->create_reply_channel(),
                                  one.must_encrypt);
    // Without a channel, the last connection is about to end, and its opens with it.
    if (ways.empty()) return has_ended_any;
    send_over(host,
              {.of = one.of,
               .which = one.which,
               .message = one.message,
               .needs_answer = one.notice->needs_answer,
               .must_encrypt = one.must_encrypt},
              ways.front(), std::move(one.counted));
    return has_ended_any;
}

bool decided_breaks::send(server_context& host) noexcept {
    if (decided_.empty()) return false;
    if (outermost_ != nullptr) {
        for (decision& each : decided_)
            outermost_->decided_.push_back(std::move(each));
        decided_.clear();
        return false;
    }
    bool has_ended_any = false;
    outermost_ = this;
    for (std::size_t i = 0; i != decided_.size(); ++i) {
        decision one = std::move(decided_[i]);  // the list may grow
        has_ended_any |= send_or_end(host, one);
    }
    ENSURE(std::exchange(outermost_, nullptr) == this, "the outermost call sends all breaks");
    decided_.clear();
    return has_ended_any;
}

nt_status take_answer(request& r, const std::shared_ptr<lease>& of, lease_state kept) {
    std::optional<timer_queue::entry> limit;
    {
        const file_section held(*of->file);
        if (of->opens.empty()) return nt_status::object_name_not_found;
        // A break that was not announced yet cannot be answered.
        if (of->is_breaking() and (not of->time_limit or of->parked)) return nt_status::unsuccessful;
        const lease::answer answer = of->acknowledge(kept);
        if (answer.status != nt_status::success) return answer.status;
        record_lease(held, *of);
        limit = std::exchange(of->time_limit, std::nullopt);
        of->file->wake_caching_waiters(held);
        if (answer.next) {
            ENSURE(not r.grants, "a reply to an answer grants nothing");
            ++of->breaks_decided;
            of->parked = *answer.next;
            ++of->unsent_grants;
            r.grants.emplace(r.host(), of);
        }
    }
    r.host().later.end(limit);
    return nt_status::success;
}

std::shared_ptr<lease> leave_lease(const file_section& held, server_context& host, open& one) noexcept {
    std::shared_ptr<lease> of = std::move(one.in_file(held).lease);
    if (of == nullptr) return nullptr;
    ENSURE(held.is_of(*of->file), "a file is used in a section of its own");
    ENSURE(std::erase(of->opens, &one) == 1, "a lease names each of its opens once");
    if (not of->opens.empty()) return of;
    host.later.end(of->time_limit);
    of->parked.reset();
    if (not of->is_oplock()) host.leases.remove(*of);
    return of;
}

void revoke_caching(server_context& host, lease& of) noexcept {
    const file_section held(*of.file);
    host.later.end(of.time_limit);
    of.parked.reset();
    of.time_out();
    record_lease(held, of);
    ENSURE(not of.is_breaking() and not of.time_limit, "nothing is left of a break that was taken away");
    of.file->wake_caching_waiters(held);
}

void end_unsent_grant(server_context& host, const std::shared_ptr<lease>& of) noexcept {
    decided_breaks parked;
    {
        const file_section held(*of->file);
        ENSURE(of->unsent_grants != 0, "a reply that grants a lease is sent once");
        if (--of->unsent_grants == 0) parked.add_parked(held, host, of);
    }
    (void)parked.send(host);
}

}  // namespace sluice::smb::server
