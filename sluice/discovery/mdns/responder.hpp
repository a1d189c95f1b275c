#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/clock.hpp"
#include "sluice/base/random.hpp"
#include "sluice/discovery/limits.hpp"
#include "sluice/discovery/mdns/record_set.hpp"
#include "sluice/discovery/network/link.hpp"

namespace sluice::discovery {

/// The port of multicast DNS.
inline constexpr std::uint16_t mdns_port = 5353;

/// A datagram that arrived on a link. The bytes are borrowed.
struct received_packet {
    link_key where{};
    io::socket_address from{};
    bytes_view bytes;
    bool is_to_group = true;  // else to an address of this host
};

/// A datagram to send on a link; without a destination, to the multicast group.
struct outgoing_packet {
    link_key where;
    std::optional<io::socket_address> to{};
    std::string bytes;
};

/// A responder of multicast DNS (RFC 6762) for one server. It claims a host name and the name of
/// its services on each link by probing, announces them, answers questions, defends the names, and
/// takes others ("NAME-2", "NAME (2)") if another host has them.
///
/// Deterministic: time, random numbers and packets are arguments, so tests simulate them. Packets
/// to send are appended to `out`.
///
/// Invariants:
/// 1. A link answers only after it has sent all probes of the present names.
/// 2. Every table has a bound: links, records, pending answers (one per record), own packets.
/// 3. A packet from outside the link, or one that is malformed, changes nothing. A response changes
///    nothing either unless it was sent to the group, which routers do not forward.
///
/// Thread safety: none. Allocates: yes.
class mdns_responder {
public:
    using time = clock_source::steady_time;
    using packets = std::vector<outgoing_packet>;

    /// `random` outlives the responder. The name is a label.
    mdns_responder(const service_description& description, random_source& random);
    mdns_responder(const mdns_responder&) = delete;
    mdns_responder& operator=(const mdns_responder&) = delete;

    /// Replaces the links. A new one begins with probes; one with other addresses announces them;
    /// one that is gone is forgotten. `own_addresses` are all addresses of this host: another
    /// program here may advertise them as well, which is not a conflict. At most limits::links_max.
    void set_links(std::span<const link> links, std::vector<ip_bytes> own_addresses, time now);

    void receive(const received_packet& packet, time now, packets& out);

    /// Returns when advance() has something to do; time::max() for never.
    [[nodiscard]] time next_due() const noexcept;
    /// Sends the probes, announcements and answers that are due.
    void advance(time now, packets& out);

    /// Withdraws all records with a goodbye (RFC 6762 section 10.1) and forgets the links.
    void stop(packets& out);

    /// Return the labels in use now.
    [[nodiscard]] std::string host_label() const;
    [[nodiscard]] std::string instance_label() const;
    /// Returns whether a link has claimed its names.
    [[nodiscard]] bool is_established(link_key key) const noexcept;

private:
    enum class phase : std::uint8_t { probing, announcing, established };

    struct pending_answer {
        std::size_t record = 0;
        time due{};
        std::optional<io::socket_address> asked_by{};  // none: several hosts
    };

    struct link_state {
        link where;
        phase now_in = phase::probing;
        time next{};                 // probe or announcement
        unsigned sent = 0;           // of them
        bool has_announced = false;  // the present shared records
        std::vector<owned_record> records{};
        std::vector<std::optional<time>> last_multicast{};  // one per record
        std::vector<pending_answer> pending{};
        unsigned unicast_budget = limits::unicast_replies_burst;
        time budget_since{};
    };
    // The properties of a query that decide when it is answered; by default, there was no query.
    struct query {
        std::optional<io::socket_address> from{};
        bool is_truncated = false;  // more known answers follow
        bool is_probe = false;
    };

    [[nodiscard]] link_state* find(link_key key) noexcept;
    [[nodiscard]] time random_after(time now, std::chrono::milliseconds least,
                                    std::chrono::milliseconds most);
    void build_records(link_state& on);
    [[nodiscard]] bool is_of_this_host(const dns_record& record) const;

    void take_query(link_state& on, const dns_message& message, const received_packet& packet, time now,
                    packets& out);
    void compare_probes(link_state& on, const dns_message& message, time now);
    void suppress_known(link_state& on, const dns_message& message, const io::socket_address& from);
    void reply_legacy(link_state& on, const dns_message& message, const io::socket_address& to,
                      const std::vector<std::size_t>& records, time now, packets& out);
    void schedule(link_state& on, std::span<const std::size_t> records, const query& asked, time now);

    void take_response(link_state& on, const dns_message& message, time now, packets& out);
    [[nodiscard]] bool take_answer(link_state& on, const dns_record& record, bool is_answer, time now,
                                   packets& out);
    void rename(name_owner which, time now, packets& out);
    void probe_again(time now);
    [[nodiscard]] bool record_conflict(time now);

    void send_probe(link_state& on, packets& out);
    void announce(link_state& on, time now, packets& out);
    void withdraw(link_state& on, std::vector<dns_record> records, packets& out);
    void answer_due(link_state& on, time now, packets& out);
    [[nodiscard]] bool may_reply(link_state& on, time now);
    void send(link_state& on, std::optional<io::socket_address> to, std::string bytes, packets& out);
    [[nodiscard]] bool is_own_packet(bytes_view bytes) const noexcept;

    std::string name_;
    std::vector<advertised_service> services_;
    random_source& random_;
    unsigned host_number_ = 1;
    unsigned instance_number_ = 1;
    std::vector<link_state> links_;
    std::vector<ip_bytes> own_addresses_;
    // The latest, oldest first.
    std::vector<time> conflicts_;
    std::array<std::uint64_t, limits::own_packets_remembered> own_packets_{};  // hashes
    std::size_t own_packets_next_ = 0;
};

}  // namespace sluice::discovery
