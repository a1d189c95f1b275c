// Links, names and conflicts; see responder_query.cpp and responder_send.cpp for the rest.

#include "sluice/discovery/mdns/responder.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"

namespace sluice::discovery {

mdns_responder::mdns_responder(const service_description& description, random_source& random)
    : name_(description.name), services_(services_of(description)), random_(random) {
    ENSURE(not name_.empty() and name_.size() <= limits::dns_label_bytes_max, "the name is a label");
}

std::string mdns_responder::host_label() const {
    return host_number_ == 1 ? name_ : label_with_suffix(name_, "-" + std::to_string(host_number_));
}

std::string mdns_responder::instance_label() const {
    if (instance_number_ == 1) return name_;
    return label_with_suffix(name_, " (" + std::to_string(instance_number_) + ")");
}

mdns_responder::link_state* mdns_responder::find(link_key key) noexcept {
    const auto found = std::ranges::find(links_, key, [](const link_state& each) { return each.where.key; });
    return found == links_.end() ? nullptr : &*found;
}

bool mdns_responder::is_established(link_key key) const noexcept {
    return std::ranges::any_of(links_, [key](const link_state& each) {
        return each.where.key == key and each.now_in != phase::probing;
    });
}

mdns_responder::time mdns_responder::random_after(time now, std::chrono::milliseconds least,
                                                  std::chrono::milliseconds most) {
    ENSURE(least <= most);
    const auto span = static_cast<std::uint64_t>((most - least).count());
    return now + least + std::chrono::milliseconds(random_.below(span + 1));
}

void mdns_responder::build_records(link_state& on) {
    on.records = records_for(host_label(), instance_label(), services_, on.where.advertised);
    on.last_multicast.assign(on.records.size(), std::nullopt);
    on.pending.clear();
}

void mdns_responder::set_links(std::span<const link> links, std::vector<ip_bytes> own_addresses, time now) {
    own_addresses_ = std::move(own_addresses);
    const auto is_gone = [&](const link_state& each) {
        return std::ranges::find(links, each.where.key, &link::key) == links.end();
    };
    std::erase_if(links_, is_gone);
    for (const link& each : links) {
        if (link_state* const known = find(each.key); known != nullptr) {
            if (known->where == each) continue;
            const bool has_other_records = known->where.advertised != each.advertised;
            known->where = each;
            if (not has_other_records) continue;
            build_records(*known);
            if (known->now_in == phase::probing) continue;
            // The names are ours already: announcing replaces the addresses (section 8.4).
            known->now_in = phase::announcing;
            known->sent = 0;
            known->next = now;
        } else if (links_.size() < limits::links_max) {
            link_state fresh{.where = each, .budget_since = now};
            build_records(fresh);
            fresh.next = random_after(now, {}, limits::probe_first_delay_max);
            links_.push_back(std::move(fresh));
        }
    }
    ENSURE(links_.size() <= limits::links_max);
}

void mdns_responder::receive(const received_packet& packet, time now, packets& out) {
    link_state* const on = find(packet.where);
    if (on == nullptr or packet.from.port() == 0) return;
    if ((packet.from.family() == io::address_family::ip_v6) != packet.where.is_v6) return;
    if (not is_on_link(on->where, packet.from.ip_bytes()) or is_own_packet(packet.bytes)) return;
    const auto message = decode_dns_message(packet.bytes);
    if (not message) return;
    if ((message->flags & (dns_message::opcode_mask | dns_message::status_mask)) != 0) return;
    if ((message->flags & dns_message::is_response) == 0) return take_query(*on, *message, packet, now, out);
    if (packet.is_to_group and packet.from.port() == mdns_port) take_response(*on, *message, now, out);
}

bool mdns_responder::is_of_this_host(const dns_record& record) const {
    return std::ranges::any_of(own_addresses_, [&](const ip_bytes& own) {
        const std::size_t begin = is_v4(own) ? 12 : 0;
        const dns_type type = is_v4(own) ? dns_type::a : dns_type::aaaa;
        const std::string_view data(reinterpret_cast<const char*>(own.data()) + begin, own.size() - begin);
        return record.type == type and record.data == data;
    });
}

void mdns_responder::take_response(link_state& on, const dns_message& message, time now, packets& out) {
    for (const dns_record& record : message.answers)
        if (not take_answer(on, record, true, now, out)) return;
    for (const dns_record& record : message.additionals)
        if (not take_answer(on, record, false, now, out)) return;
}

// Returns false if the record was a conflict, which has changed the names or the phase.
bool mdns_responder::take_answer(link_state& on, const dns_record& record, bool is_answer, time now,
                                 packets& out) {
    if (record.class_code != dns_class_in) return true;
    name_owner owner = name_owner::none;
    bool is_known = false;
    bool has_type = false;
    for (std::size_t i = 0; i != on.records.size(); ++i) {
        const owned_record& own = on.records[i];
        if (own.record.name != record.name) continue;
        if (own.is_unique()) owner = own.owner;
        has_type = has_type or (own.record.type == record.type and own.is_unique());
        if (own.record.type != record.type or own.record.data != record.data) continue;
        is_known = true;
        if (record.ttl_seconds >= own.record.ttl_seconds) {
            // Another host has just given this answer to all (section 7.4).
            if (is_answer)
                std::erase_if(on.pending, [i](const pending_answer& each) { return each.record == i; });
        } else if (record.ttl_seconds < own.record.ttl_seconds / 2 and on.now_in != phase::probing) {
            const std::size_t index[] = {i};
            schedule(on, index, {}, now);  // section 6.6
        }
    }
    const bool is_harmless = owner == name_owner::none or is_known or record.ttl_seconds == 0 or
                             record.type == dns_type::nsec or is_of_this_host(record);
    if (is_harmless) return true;
    if (on.now_in == phase::probing) {
        rename(owner, now, out);
        return false;
    }
    if (not has_type) return true;
    probe_again(now);  // the other host defends the name, or loses it (section 9)
    return false;
}

void mdns_responder::compare_probes(link_state& on, const dns_message& message, time now) {
    using data = std::pair<std::pair<std::uint16_t, std::uint16_t>, std::string_view>;
    const auto data_of = [](const dns_record& record) {
        // string_view compares bytes as unsigned numbers, as section 8.2.1 demands.
        return data{{record.class_code, static_cast<std::uint16_t>(record.type)}, record.data};
    };
    std::vector<const dns_name*> done;
    for (const owned_record& first : on.records) {
        if (not first.is_unique() or
            std::ranges::any_of(done, [&](auto* name) { return *name == first.record.name; }))
            continue;
        done.push_back(&first.record.name);
        std::vector<data> ours;
        std::vector<data> theirs;
        for (const owned_record& each : on.records)
            if (each.is_unique() and not each.is_negative and each.record.name == first.record.name)
                ours.push_back(data_of(each.record));
        for (const dns_record& each : message.authorities)
            if (each.name == first.record.name) theirs.push_back(data_of(each));
        if (theirs.empty()) continue;
        std::ranges::sort(ours);
        std::ranges::sort(theirs);
        if (not std::ranges::lexicographical_compare(ours, theirs)) continue;
        on.sent = 0;
        on.next = now + limits::lost_tie_break_pause;
        return;
    }
}

// Withdraws the shared records of the old name that were announced. Its other records may be those
// of the host that has the name now.
void mdns_responder::rename(name_owner which, time now, packets& out) {
    ENSURE(which != name_owner::none, "a shared record has no conflicts");
    unsigned& number = which == name_owner::host ? host_number_ : instance_number_;
    ++number;
    for (link_state& each : links_) {
        const std::vector<owned_record> old = std::move(each.records);
        build_records(each);
        if (not each.has_announced) continue;
        std::vector<dns_record> gone;
        for (const owned_record& own : old)
            if (not own.is_unique() and std::ranges::none_of(each.records, [&](const owned_record& now_own) {
                    return now_own.record.name == own.record.name and now_own.record.data == own.record.data;
                }))
                gone.push_back(own.record);
        if (gone.empty()) continue;
        withdraw(each, std::move(gone), out);
        each.has_announced = false;
    }
    probe_again(now);
}

// Returns whether there were so many conflicts that the next probe must wait (section 8.1).
bool mdns_responder::record_conflict(time now) {
    std::erase_if(conflicts_, [now](time when) { return now - when > limits::quick_conflicts_within; });
    if (conflicts_.size() >= limits::quick_conflicts_max) return true;
    conflicts_.push_back(now);
    return false;
}

void mdns_responder::probe_again(time now) {
    const bool is_slow = record_conflict(now);
    for (link_state& each : links_) {
        each.now_in = phase::probing;
        each.sent = 0;
        each.pending.clear();
        each.next =
            is_slow ? now + limits::slow_probe_pause : random_after(now, {}, limits::probe_first_delay_max);
    }
}

}  // namespace sluice::discovery
