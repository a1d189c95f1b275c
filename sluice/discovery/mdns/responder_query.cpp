// Questions of others.

#include "sluice/discovery/mdns/responder.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::discovery {

namespace {

[[nodiscard]] bool asks_for(const dns_question& question, const dns_record& record) noexcept {
    const bool is_class = question.class_code == dns_class_in or question.class_code == dns_class_any;
    return is_class and (question.type == dns_type::any or question.type == record.type) and
           question.name == record.name;
}

[[nodiscard]] bool is_known(const dns_record& own, const std::vector<dns_record>& answers) noexcept {
    return std::ranges::any_of(answers, [&](const dns_record& each) {
        return each.type == own.type and each.class_code == own.class_code and
               each.ttl_seconds >= own.ttl_seconds / 2 and each.name == own.name and each.data == own.data;
    });
}

void add_once(std::vector<std::size_t>& to, std::size_t index) {
    if (std::ranges::find(to, index) == to.end()) to.push_back(index);
}

// Appends the records that answer a question, or the one that states that there is none.
void find_answers(const dns_question& question, const std::vector<owned_record>& records,
                  std::vector<std::size_t>& into) {
    bool is_answered = false;
    std::optional<std::size_t> negative;
    for (std::size_t i = 0; i != records.size(); ++i) {
        const owned_record& own = records[i];
        if (own.is_negative) {
            if (own.record.name == question.name) negative = i;
            if (question.type == dns_type::any) continue;
        }
        if (not asks_for(question, own.record)) continue;
        is_answered = true;
        add_once(into, i);
    }
    if (not is_answered and negative) add_once(into, *negative);
}

}  // namespace

void mdns_responder::take_query(link_state& on, const dns_message& message, const received_packet& packet,
                                time now, packets& out) {
    if (on.now_in == phase::probing) {
        if (not message.authorities.empty()) compare_probes(on, message, now);
        return;
    }
    const bool is_legacy = packet.from.port() != mdns_port;
    if (message.questions.empty()) {
        if (not is_legacy) suppress_known(on, message, packet.from);
        return;
    }
    std::vector<std::size_t> to_all;
    std::vector<std::size_t> to_one;
    // Computed once for each record: another question may ask for it again.
    std::vector<std::optional<bool>> known(on.records.size());
    for (const dns_question& question : message.questions) {
        std::vector<std::size_t> found;
        find_answers(question, on.records, found);
        for (const std::size_t index : found) {
            const dns_record& own = on.records[index].record;
            if (not known[index]) known[index] = is_known(own, message.answers);
            if (*known[index]) continue;
            const auto last = on.last_multicast[index];
            const bool is_recent = last and now - *last < std::chrono::seconds(own.ttl_seconds) / 4;
            add_once(is_legacy or (question.wants_unicast and is_recent) ? to_one : to_all, index);
        }
    }
    ENSURE(to_all.size() <= on.records.size() and to_one.size() <= on.records.size());
    if (is_legacy) return reply_legacy(on, message, packet.from, to_one, now, out);
    if (not to_one.empty() and may_reply(on, now)) {
        dns_writer writer(0, dns_message::is_response | dns_message::is_authoritative,
                          limits::dns_sent_bytes_max);
        for (const std::size_t index : to_one)
            if (not writer.add(dns_writer::section::answers, on.records[index].record)) break;
        send(on, packet.from, writer.bytes(), out);
    }
    schedule(on, to_all,
             {.from = packet.from,
              .is_truncated = (message.flags & dns_message::is_truncated) != 0,
              .is_probe = not message.authorities.empty()},
             now);
}

// A message without questions continues the known answers of a truncated query (section 7.2).
void mdns_responder::suppress_known(link_state& on, const dns_message& message,
                                    const io::socket_address& from) {
    std::erase_if(on.pending, [&](const pending_answer& each) {
        return each.asked_by and * each.asked_by == from and
               is_known(on.records[each.record].record, message.answers);
    });
}

// Replies to a resolver that does not know multicast DNS (section 6.7): like a DNS server.
void mdns_responder::reply_legacy(link_state& on, const dns_message& message, const io::socket_address& to,
                                  const std::vector<std::size_t>& records, time now, packets& out) {
    if (records.empty() or not may_reply(on, now)) return;
    dns_writer writer(message.id, dns_message::is_response | dns_message::is_authoritative,
                      limits::dns_legacy_bytes_max);
    // A resolver sends one question; echoing more of them would only amplify.
    if (message.questions.size() != 1) return;
    dns_question question = message.questions.front();
    question.wants_unicast = false;
    if (not writer.add(question)) return;
    for (const std::size_t index : records) {
        dns_record record = on.records[index].record;
        record.flushes_cache = false;
        record.ttl_seconds = std::min(record.ttl_seconds, limits::ttl_seconds_legacy_max);
        if (not writer.add(dns_writer::section::answers, record)) break;
    }
    send(on, to, writer.bytes(), out);
}

void mdns_responder::schedule(link_state& on, std::span<const std::size_t> records, const query& asked,
                              time now) {
    if (records.empty()) return;
    const bool is_shared =
        std::ranges::any_of(records, [&](std::size_t index) { return not on.records[index].is_unique(); });
    time when = now;
    if (asked.is_truncated)
        when = random_after(now, limits::truncated_query_delay_min, limits::truncated_query_delay_max);
    else if (is_shared)
        when = random_after(now, limits::shared_reply_delay_min, limits::shared_reply_delay_max);
    const auto gap = asked.is_probe ? clock_source::duration(limits::record_defence_interval)
                                    : clock_source::duration(limits::record_multicast_interval);
    for (const std::size_t index : records) {
        ENSURE(index < on.records.size());
        const auto last = on.last_multicast[index];
        const time due = last ? std::max(when, *last + gap) : when;
        const auto known = std::ranges::find(on.pending, index, &pending_answer::record);
        if (known == on.pending.end()) {
            on.pending.push_back({.record = index, .due = due, .asked_by = asked.from});
            continue;
        }
        known->due = std::min(known->due, due);
        if (known->asked_by != asked.from) known->asked_by.reset();
    }
    ENSURE(on.pending.size() <= on.records.size(), "one pending answer per record");
}

}  // namespace sluice::discovery
