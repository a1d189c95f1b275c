// Sends probes, announcements, answers and goodbyes.

#include <algorithm>
#include <bit>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/mdns/responder.hpp"

namespace sluice::discovery {

namespace {

constexpr std::uint16_t response_flags = dns_message::is_response | dns_message::is_authoritative;

using section = dns_writer::section;

// FNV-1a. A constructed collision only makes the packet of its sender ineffective.
[[nodiscard]] std::uint64_t hash_of(bytes_view bytes) noexcept {
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325U;
    for (const std::byte each : bytes)
        hash = (hash ^ std::to_integer<std::uint64_t>(each)) * 0x100'0000'01b3U;
    return hash;
}

[[nodiscard]] bytes_view as_bytes(std::string_view text) noexcept {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// Distributes records over as many messages as they need. A record that fits none is omitted.
[[nodiscard]] std::vector<std::string> messages_of(std::span<const dns_record> answers,
                                                   std::span<const dns_record> additionals) {
    std::vector<std::string> messages;
    dns_writer writer(0, response_flags, limits::dns_sent_bytes_max);
    for (const dns_record& each : answers) {
        if (writer.add(section::answers, each)) continue;
        if (not writer.is_empty()) messages.push_back(writer.bytes());
        writer = dns_writer(0, response_flags, limits::dns_sent_bytes_max);
        (void)writer.add(section::answers, each);
    }
    for (const dns_record& each : additionals)
        if (writer.is_empty() or not writer.add(section::additionals, each)) break;
    if (not writer.is_empty()) messages.push_back(writer.bytes());
    return messages;
}

// Returns the records that a client will need next (RFC 6763 section 12). For a PTR: the records of
// its target. For an SRV or an address: all addresses of the host.
[[nodiscard]] std::vector<std::size_t> additionals_for(const std::vector<owned_record>& records,
                                                       const std::vector<std::size_t>& answers) {
    std::vector<std::size_t> added;
    const auto add_all = [&](const auto& is_wanted) {
        for (std::size_t i = 0; i != records.size(); ++i)
            if (is_wanted(records[i]) and std::ranges::find(answers, i) == answers.end() and
                std::ranges::find(added, i) == added.end())
                added.push_back(i);
    };
    bool wants_host = false;
    for (const std::size_t index : answers) {
        const owned_record& answer = records[index];
        wants_host = wants_host or answer.owner == name_owner::host or answer.record.type == dns_type::srv;
        if (answer.record.type != dns_type::ptr) continue;
        add_all([&](const owned_record& each) {
            return each.owner == name_owner::instance and not each.is_negative and
                   each.record.name.wire() == answer.record.data;
        });
    }
    wants_host = wants_host or std::ranges::any_of(added, [&](std::size_t i) {
                     return records[i].record.type == dns_type::srv;
                 });
    if (wants_host) add_all([](const owned_record& each) { return each.owner == name_owner::host; });
    return added;
}

}  // namespace

bool mdns_responder::is_own_packet(bytes_view bytes) const noexcept {
    return std::ranges::find(own_packets_, hash_of(bytes)) != own_packets_.end();
}

void mdns_responder::send(link_state& on, std::optional<io::socket_address> to, std::string bytes,
                          packets& out) {
    own_packets_[own_packets_next_] = hash_of(as_bytes(bytes));
    own_packets_next_ = (own_packets_next_ + 1) % own_packets_.size();
    out.push_back({.where = on.where.key, .to = to, .bytes = std::move(bytes)});
}

// Limits replies to single hosts, whose addresses may be forged: a bucket that refills steadily.
bool mdns_responder::may_reply(link_state& on, time now) {
    constexpr auto interval =
        std::chrono::nanoseconds(std::chrono::seconds(1)) / limits::unicast_replies_per_second;
    const auto earned = static_cast<std::uint64_t>((now - on.budget_since) / interval);
    if (earned != 0) {
        on.unicast_budget = static_cast<unsigned>(
            std::min<std::uint64_t>(limits::unicast_replies_burst, on.unicast_budget + earned));
        on.budget_since = now;
    }
    if (on.unicast_budget == 0) return false;
    --on.unicast_budget;
    return true;
}

void mdns_responder::send_probe(link_state& on, packets& out) {
    dns_writer writer(0, 0, limits::dns_sent_bytes_max);
    std::vector<const dns_name*> asked;
    // Not as a unicast question: another program of this host that shares the port might get the
    // reply (section 15.1).
    for (const owned_record& each : on.records) {
        if (not each.is_unique() or
            std::ranges::any_of(asked, [&](const dns_name* name) { return *name == each.record.name; }))
            continue;
        asked.push_back(&each.record.name);
        if (not writer.add(dns_question{.name = each.record.name, .type = dns_type::any})) return;
    }
    if (asked.empty()) return;
    for (const owned_record& each : on.records) {
        if (not each.is_unique() or each.is_negative) continue;
        dns_record proposed = each.record;
        proposed.flushes_cache = false;  // section 8.2: not in probes
        if (not writer.add(section::authorities, proposed)) break;
    }
    send(on, std::nullopt, writer.bytes(), out);
}

void mdns_responder::announce(link_state& on, time now, packets& out) {
    std::vector<dns_record> all;
    for (std::size_t i = 0; i != on.records.size(); ++i) {
        all.push_back(on.records[i].record);
        on.last_multicast[i] = now;
    }
    on.pending.clear();
    on.has_announced = true;
    for (std::string& each : messages_of(all, {}))
        send(on, std::nullopt, std::move(each), out);
}

void mdns_responder::answer_due(link_state& on, time now, packets& out) {
    std::vector<std::size_t> due;
    for (const pending_answer& each : on.pending)
        if (each.due <= now) due.push_back(each.record);
    if (due.empty()) return;
    std::erase_if(on.pending, [now](const pending_answer& each) { return each.due <= now; });
    const auto records_of = [&](const std::vector<std::size_t>& indexes) {
        std::vector<dns_record> records;
        for (const std::size_t index : indexes) {
            ENSURE(index < on.records.size());
            records.push_back(on.records[index].record);
            on.last_multicast[index] = now;
        }
        return records;
    };
    const std::vector<dns_record> answers = records_of(due);
    const std::vector<dns_record> additionals = records_of(additionals_for(on.records, due));
    for (std::string& each : messages_of(answers, additionals))
        send(on, std::nullopt, std::move(each), out);
}

mdns_responder::time mdns_responder::next_due() const noexcept {
    time first = time::max();
    for (const link_state& each : links_) {
        if (each.now_in != phase::established) first = std::min(first, each.next);
        for (const pending_answer& answer : each.pending)
            first = std::min(first, answer.due);
    }
    return first;
}

void mdns_responder::advance(time now, packets& out) {
    for (link_state& each : links_) {
        if (each.now_in == phase::probing and each.next <= now) {
            if (each.sent == limits::probes) {
                each.now_in = phase::announcing;
                each.sent = 0;
            } else {
                send_probe(each, out);
                ++each.sent;
                each.next = now + limits::probe_interval;
            }
        }
        if (each.now_in == phase::announcing and each.next <= now) {
            announce(each, now, out);
            ++each.sent;
            each.next = now + limits::announcement_interval;
            if (each.sent == limits::announcements) each.now_in = phase::established;
        }
        answer_due(each, now, out);
    }
}

// A goodbye (section 10.1).
void mdns_responder::withdraw(link_state& on, std::vector<dns_record> records, packets& out) {
    for (dns_record& each : records)
        each.ttl_seconds = 0;
    for (std::string& message : messages_of(records, {}))
        send(on, std::nullopt, std::move(message), out);
}

void mdns_responder::stop(packets& out) {
    for (link_state& each : links_) {
        const bool is_probing = each.now_in == phase::probing;
        if (is_probing and not each.has_announced) continue;
        std::vector<dns_record> all;
        for (const owned_record& own : each.records)
            if (not is_probing or not own.is_unique())  // another host may have the names now
                all.push_back(own.record);
        withdraw(each, std::move(all), out);
    }
    links_.clear();
}

}  // namespace sluice::discovery
