#include "sluice/discovery/wsd/wsd_responder.hpp"

#include <algorithm>
#include <functional>

#include "sluice/base/ensure.hpp"

namespace sluice::discovery {

namespace {

constexpr std::string_view urn = "urn:uuid:";

// A URL needs the zone of a link-local address, which only its reader knows; Windows adds it.
[[nodiscard]] std::string url_host(const ip_bytes& address) {
    std::string text;
    if (is_v4(address)) {
        for (std::size_t i = 12; i != 16; ++i)
            text += (text.empty() ? "" : ".") + std::to_string(std::to_integer<unsigned>(address[i]));
        return text;
    }
    constexpr std::string_view digits = "0123456789abcdef";
    for (std::size_t i = 0; i != 16; ++i) {
        if (i != 0 and i % 2 == 0) text += ':';
        const auto number = std::to_integer<unsigned>(address[i]);
        text += digits[number >> 4];
        text += digits[number & 0xfU];
    }
    return "[" + text + "]";
}

}  // namespace

std::string urn_uuid(std::span<const std::byte, 16> bytes, unsigned version) {
    constexpr std::string_view digits = "0123456789abcdef";
    ENSURE(version < 16);
    std::string text(urn);
    for (std::size_t i = 0; i != bytes.size(); ++i) {
        auto number = std::to_integer<unsigned>(bytes[i]);
        if (i == 6) number = (number & 0x0fU) | version << 4;
        if (i == 8) number = (number & 0x3fU) | 0x80U;
        if (i == 4 or i == 6 or i == 8 or i == 10) text += '-';
        text += digits[number >> 4];
        text += digits[number & 0xfU];
    }
    return text;
}

wsd_responder::wsd_responder(wsd_facts facts, random_source& random)
    : facts_(std::move(facts)), random_(random) {
    ENSURE(facts_.endpoint.starts_with(urn));
}

std::string wsd_responder::path() const {
    return "/" + facts_.endpoint.substr(urn.size());
}

wsd_envelope wsd_responder::next_envelope(std::string relates_to) {
    std::array<std::byte, 16> id;
    random_.fill(id);
    return {.message_id = urn_uuid(id, 4), .relates_to = std::move(relates_to), .number = ++number_};
}

std::string wsd_responder::url_on(const link& where) const {
    const auto usable = [&](const link_address& each) { return is_v4(each.address) != where.key.is_v6; };
    const auto own = std::ranges::find_if(where.advertised, usable);
    if (own == where.advertised.end()) return {};
    return "http://" + url_host(own->address) + ":" + std::to_string(wsd_http_port) + path();
}

wsd_responder::time wsd_responder::random_delay(time now) {
    return now + std::chrono::milliseconds(
                     random_.below(static_cast<std::uint64_t>(limits::wsd_delay_max.count()) + 1));
}

void wsd_responder::push(link_state& on, time due, std::optional<io::socket_address> to,
                         const std::string& bytes) {
    ENSURE(on.pending.size() < limits::wsd_pending_replies_max);
    on.pending.push_back({.due = due, .to = to, .bytes = bytes});
}

void wsd_responder::announce(link_state& on, time now) {
    on.pending.clear();
    const std::string url = url_on(on.where);
    if (url.empty()) return;
    const std::string hello = wsd_hello(facts_, next_envelope(), url);
    time due = random_delay(now);
    for (unsigned i = 0; i != limits::wsd_multicast_copies; ++i, due += limits::wsd_copy_interval)
        push(on, due, std::nullopt, hello);
}

void wsd_responder::set_links(std::span<const link> links, time now) {
    std::erase_if(links_, [&](const link_state& each) {
        return std::ranges::find(links, each.where.key, &link::key) == links.end();
    });
    for (const link& each : links) {
        const auto known =
            std::ranges::find(links_, each.key, [](const link_state& state) { return state.where.key; });
        if (known == links_.end()) {
            if (links_.size() == limits::links_max) continue;
            links_.push_back({.where = each, .pending = {}});
            announce(links_.back(), now);
        } else if (known->where != each) {
            const bool has_other_url = url_on(known->where) != url_on(each);
            known->where = each;
            if (has_other_url) announce(*known, now);
        }
    }
}

// Senders repeat each message. A hash suffices: a collision only loses one message.
bool wsd_responder::is_repeated(std::string_view message_id) {
    const std::uint64_t hash = std::hash<std::string_view>()(message_id);
    if (std::ranges::find(known_, hash) != known_.end()) return true;
    known_[known_next_] = hash;
    known_next_ = (known_next_ + 1) % known_.size();
    return false;
}

void wsd_responder::receive(const received_packet& packet, time now) {
    if (not packet.is_to_group) return;
    const auto on =
        std::ranges::find(links_, packet.where, [](const link_state& state) { return state.where.key; });
    if (on == links_.end() or packet.from.port() == 0 or not is_on_link(on->where, packet.from.ip_bytes()))
        return;
    if (on->pending.size() == limits::wsd_pending_replies_max) return;
    if (not on->parses.take(now)) return;
    const auto request =
        parse_wsd_request({reinterpret_cast<const char*>(packet.bytes.data()), packet.bytes.size()});
    if (not request or request->action == wsd_action::get) return;
    const bool is_for_us = request->action == wsd_action::probe
                               ? request->matches_types and not request->has_scopes
                               : request->endpoint == facts_.endpoint;
    const std::string url = url_on(on->where);
    if (not is_for_us or url.empty()) return;
    // The addresses may be forged. A message without a reply is not a known one: its copy, or its
    // repetition, may get the reply.
    if (not on->replies.has_any(now) or is_repeated(request->message_id) or not on->replies.take(now)) return;
    const time due = request->action == wsd_action::probe ? random_delay(now) : now;
    push(*on, due, packet.from, wsd_match(facts_, next_envelope(request->message_id), request->action, url));
}

bool wsd_responder::is_near(const ip_bytes& host) const noexcept {
    return std::ranges::any_of(links_, [&](const link_state& each) { return is_on_link(each.where, host); });
}

std::optional<std::string> wsd_responder::describe(std::string_view xml, const ip_bytes& from, time now) {
    if (not is_near(from) or not descriptions_.take(now)) return std::nullopt;
    const auto request = parse_wsd_request(xml);
    if (not request or request->action != wsd_action::get) return std::nullopt;
    return wsd_description(facts_, next_envelope(request->message_id));
}

wsd_responder::time wsd_responder::next_due() const noexcept {
    time first = time::max();
    for (const link_state& each : links_)
        for (const pending_packet& packet : each.pending)
            first = std::min(first, packet.due);
    return first;
}

void wsd_responder::advance(time now, packets& out) {
    for (link_state& each : links_)
        std::erase_if(each.pending, [&](pending_packet& packet) {
            if (packet.due > now) return false;
            out.push_back({.where = each.where.key, .to = packet.to, .bytes = std::move(packet.bytes)});
            return true;
        });
}

void wsd_responder::stop(packets& out) {
    for (const link_state& each : links_) {
        const std::string bye = wsd_bye(facts_, next_envelope());
        for (unsigned i = 0; i != limits::wsd_multicast_copies; ++i)
            out.push_back({.where = each.where.key, .bytes = bye});
    }
    links_.clear();
}

}  // namespace sluice::discovery
