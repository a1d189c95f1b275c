#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/discovery/limits.hpp"
#include "sluice/discovery/mdns/responder.hpp"
#include "sluice/discovery/network/rate_budget.hpp"
#include "sluice/discovery/wsd/wsd_message.hpp"

namespace sluice::discovery {

inline constexpr std::uint16_t wsd_port = 3702;
inline constexpr std::uint16_t wsd_http_port = 5357;  // the port that Windows expects

/// The target service of WS-Discovery: announces the server with Hello and Bye, and answers Probe
/// and Resolve. Deterministic, as mdns_responder. Messages that are not for us, repeated, not sent
/// to the group, or from outside the link get no answer. Thread safety: none. Allocates: yes.
class wsd_responder {
public:
    using time = clock_source::steady_time;
    using packets = std::vector<outgoing_packet>;

    /// `random` outlives the responder.
    wsd_responder(wsd_facts facts, random_source& random);
    wsd_responder(const wsd_responder&) = delete;
    wsd_responder& operator=(const wsd_responder&) = delete;

    /// Replaces the links. A new one, or one with other addresses, is announced after up to 500 ms.
    void set_links(std::span<const link> links, time now);
    void receive(const received_packet& packet, time now);
    [[nodiscard]] time next_due() const noexcept;
    void advance(time now, packets& out);
    /// Sends Bye and forgets the links.
    void stop(packets& out);

    /// Returns whether a host is on one of the links. Others get no answer.
    [[nodiscard]] bool is_near(const ip_bytes& host) const noexcept;

    /// Returns the reply to a request over HTTP; std::nullopt if it is not Get, if the peer `from`
    /// is not near, or if there were too many requests.
    [[nodiscard]] std::optional<std::string> describe(std::string_view xml, const ip_bytes& from, time now);

    /// Returns the path of the description, after the host of its URL.
    [[nodiscard]] std::string path() const;

private:
    struct pending_packet {
        time due{};
        std::optional<io::socket_address> to;  // none: the group
        std::string bytes;
    };
    struct link_state {
        link where;
        std::vector<pending_packet> pending;
        rate_budget parses{limits::wsd_parses_burst, limits::wsd_parses_per_second};
        rate_budget replies{limits::unicast_replies_burst, limits::unicast_replies_per_second};
    };

    [[nodiscard]] wsd_envelope next_envelope(std::string relates_to = {});
    [[nodiscard]] std::string url_on(const link& where) const;
    [[nodiscard]] time random_delay(time now);
    [[nodiscard]] bool is_repeated(std::string_view message_id);
    void announce(link_state& on, time now);
    void push(link_state& on, time due, std::optional<io::socket_address> to, const std::string& bytes);

    wsd_facts facts_;
    random_source& random_;
    std::vector<link_state> links_;
    rate_budget descriptions_{limits::wsd_descriptions_burst, limits::wsd_descriptions_per_second};
    std::uint64_t number_ = 0;
    std::array<std::uint64_t, limits::wsd_known_messages> known_{};  // hashes of message IDs
    std::size_t known_next_ = 0;
};

/// Returns "urn:uuid:…" with these 16 bytes, marked as a UUID of version 4 or 8 (RFC 9562).
[[nodiscard]] std::string urn_uuid(std::span<const std::byte, 16> bytes, unsigned version);

}  // namespace sluice::discovery
