#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Messages of WS-Discovery (version of April 2005) and WS-Transfer in SOAP 1.2, as Windows sends
// them.

namespace sluice::discovery {

enum class wsd_action : std::uint8_t { probe, resolve, get };

/// A request. All texts are untrusted and not longer than limits::xml_text_bytes_max.
struct wsd_request {
    wsd_action action = wsd_action::probe;
    std::string message_id;
    std::string endpoint{};     // of Resolve
    bool matches_types = true;  // of Probe: a computer, or a device, has all requested types
    bool has_scopes = false;    // of Probe
};

/// Parses a message. std::nullopt for every message that is not a complete request: malformed XML,
/// a document type, nesting beyond limits::xml_depth_max, another action, no message ID.
/// Allocates: yes. Complexity: linear.
[[nodiscard]] std::optional<wsd_request> parse_wsd_request(std::string_view xml);

/// The facts that replies contain.
struct wsd_facts {
    std::string endpoint;  // "urn:uuid:…"
    std::string computer;
    std::string workgroup = "WORKGROUP";
    std::uint64_t instance = 0;  // grows with each start of the server
};

/// The numbers of one message that is sent.
struct wsd_envelope {
    std::string message_id;  // "urn:uuid:…"
    std::string relates_to{};
    std::uint64_t number = 0;  // grows with each message
};

/// Return the messages. `address` is the URL of the description. Texts are escaped. Allocate: yes.
[[nodiscard]] std::string wsd_hello(const wsd_facts& facts, const wsd_envelope& with,
                                    std::string_view address);
[[nodiscard]] std::string wsd_bye(const wsd_facts& facts, const wsd_envelope& with);
[[nodiscard]] std::string wsd_match(const wsd_facts& facts, const wsd_envelope& with, wsd_action of,
                                    std::string_view address);
[[nodiscard]] std::string wsd_description(const wsd_facts& facts, const wsd_envelope& with);

/// Returns the text with the characters of markup replaced, and control characters removed.
[[nodiscard]] std::string xml_escaped(std::string_view text);

}  // namespace sluice::discovery
