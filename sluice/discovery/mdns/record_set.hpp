#pragma once

#include <string>
#include <vector>

#include "sluice/discovery/dns/dns_message.hpp"
#include "sluice/discovery/mdns/service_description.hpp"
#include "sluice/discovery/network/link.hpp"

namespace sluice::discovery {

/// The owner of a name of ours; each kind is renamed separately after a conflict.
enum class name_owner : std::uint8_t { none, host, instance };

/// A record that the responder owns on a link.
struct owned_record {
    dns_record record{};
    name_owner owner = name_owner::none;  // none: shared with other hosts, never a conflict
    bool is_negative = false;             // NSEC: only for questions about types that do not exist

    [[nodiscard]] bool is_unique() const noexcept { return owner != name_owner::none; }
};

/// Returns the records of a server on a link (RFC 6763 section 4; RFC 6762 section 6.1 for NSEC).
/// `host` and `instance` are labels. Records whose names do not fit are omitted. Allocates: yes.
[[nodiscard]] std::vector<owned_record> records_for(const std::string& host, const std::string& instance,
                                                    const std::vector<advertised_service>& services,
                                                    const std::vector<link_address>& addresses);

}  // namespace sluice::discovery
