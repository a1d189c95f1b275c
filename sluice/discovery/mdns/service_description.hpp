#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/discovery/dns/dns_message.hpp"

namespace sluice::discovery {

/// The facts about a server that DNS-SD advertises (RFC 6763).
struct service_description {
    std::string name;               // one label of a host name
    std::uint16_t port = 445;       // TCP, SMB
    std::string model = "RackMac";  // decides the icon in the Finder
    /// Names of shares for Time Machine. A name with a comma, or of more than 200 bytes, cannot be
    /// expressed and is omitted.
    std::vector<std::string> time_machine_shares{};
};

/// One advertised service: NAME._smb._tcp.local.
struct advertised_service {
    std::string type;  // "_smb._tcp"
    std::uint16_t port = 0;
    std::vector<std::string> texts{};  // of TXT; each has at most 255 bytes
    bool has_address = true;           // false: TXT alone, without PTR and SRV (_device-info)
};

/// Returns the services of a server: _smb._tcp, _device-info._tcp, and _adisk._tcp if there is a
/// share for Time Machine. Allocates: the list.
[[nodiscard]] std::vector<advertised_service> services_of(const service_description& description);

/// Returns the data of a TXT record: each text after a byte with its length; one empty text if
/// there is none (RFC 6763 section 6.1).
[[nodiscard]] std::string txt_data(const std::vector<std::string>& texts);

}  // namespace sluice::discovery
