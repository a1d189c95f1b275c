#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

/// The limits of discovery. Every datagram and every text comes from an unauthenticated sender, so
/// each table and each rate has a bound. Times of multicast DNS are those of RFC 6762.
namespace sluice::discovery::limits {

// Messages of DNS.
inline constexpr std::size_t dns_message_bytes_max = 9000;      // RFC 6762 section 17
inline constexpr std::size_t dns_sent_bytes_max = 1440;         // fits an Ethernet frame with IPv6
inline constexpr std::size_t dns_legacy_bytes_max = 512;        // RFC 1035: resolvers without EDNS
inline constexpr std::size_t dns_questions_max = 128;           // a message with more is ignored
inline constexpr std::size_t dns_records_max = 512;             // likewise, in all sections
inline constexpr std::size_t dns_name_bytes_max = 255;          // RFC 1035, with the root
inline constexpr std::size_t dns_label_bytes_max = 63;          // RFC 1035
inline constexpr std::size_t dns_pointers_max = 32;             // of compression, per name
inline constexpr std::size_t dns_compressed_suffixes_max = 64;  // remembered by an encoder

// The responder.
inline constexpr std::size_t links_max = 32;              // interfaces times address families
inline constexpr std::size_t addresses_per_link_max = 8;  // further ones are not advertised
inline constexpr std::size_t own_packets_remembered = 64;
inline constexpr unsigned probes = 3;
inline constexpr std::chrono::milliseconds probe_interval{250};
inline constexpr std::chrono::milliseconds probe_first_delay_max{250};
inline constexpr std::chrono::seconds lost_tie_break_pause{1};
inline constexpr unsigned announcements = 2;
inline constexpr std::chrono::seconds announcement_interval{1};
inline constexpr std::size_t quick_conflicts_max = 15;  // within this time; then slower probes
inline constexpr std::chrono::seconds quick_conflicts_within{10};
inline constexpr std::chrono::seconds slow_probe_pause{5};
inline constexpr std::chrono::milliseconds shared_reply_delay_min{20};
inline constexpr std::chrono::milliseconds shared_reply_delay_max{120};
inline constexpr std::chrono::milliseconds truncated_query_delay_min{400};
inline constexpr std::chrono::milliseconds truncated_query_delay_max{500};
inline constexpr std::chrono::seconds record_multicast_interval{1};
inline constexpr std::chrono::milliseconds record_defence_interval{250};
inline constexpr std::uint32_t ttl_seconds_host = 120;  // records with the host's name
inline constexpr std::uint32_t ttl_seconds_other = 4500;
inline constexpr std::uint32_t ttl_seconds_legacy_max = 10;
// Replies to one host: this many at once on a link, and then this many per second.
inline constexpr unsigned unicast_replies_burst = 20;
inline constexpr unsigned unicast_replies_per_second = 10;

// WS-Discovery.
inline constexpr std::size_t wsd_message_bytes_max = 32'768;  // over HTTP
inline constexpr unsigned xml_depth_max = 16;
inline constexpr std::size_t xml_elements_max = 256;            // per message
inline constexpr std::size_t xml_path_bytes_max = 2048;         // names of nested elements
inline constexpr std::size_t xml_text_bytes_max = 1024;         // per element in use
inline constexpr std::size_t xml_prefixes_max = 32;             // per message
inline constexpr std::chrono::milliseconds wsd_delay_max{500};  // APP_MAX_DELAY
inline constexpr unsigned wsd_multicast_copies = 2;             // SOAP-over-UDP
inline constexpr std::chrono::milliseconds wsd_copy_interval{150};
inline constexpr std::size_t wsd_pending_replies_max = 64;  // per link
inline constexpr std::size_t wsd_known_messages = 64;       // to ignore their copies
// Messages that are parsed on a link, and descriptions for all hosts: this many at once, and then
// this many per second. Further ones are ignored unread.
inline constexpr unsigned wsd_parses_burst = 100;
inline constexpr unsigned wsd_parses_per_second = 50;
inline constexpr unsigned wsd_descriptions_burst = 20;
inline constexpr unsigned wsd_descriptions_per_second = 10;

// The sockets.
inline constexpr std::size_t datagrams_per_turn_max = 16;  // per socket, before the timers run
inline constexpr std::chrono::seconds interface_poll_interval{3};

}  // namespace sluice::discovery::limits
