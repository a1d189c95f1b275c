#include "sluice/discovery/mdns/record_set.hpp"

#include <algorithm>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/limits.hpp"

namespace sluice::discovery {

namespace {

[[nodiscard]] std::string address_data(const ip_bytes& address) {
    const std::size_t begin = is_v4(address) ? 12 : 0;
    return {reinterpret_cast<const char*>(address.data()) + begin, address.size() - begin};
}

[[nodiscard]] std::string srv_data(std::uint16_t port, const dns_name& target) {
    std::string data(4, '\0');  // priority and weight
    data += static_cast<char>(port >> 8);
    data += static_cast<char>(port & 0xff);
    return data + target.wire();
}

// The restricted form of RFC 6762 section 6.1: the name itself, and one bitmap for types below 256.
[[nodiscard]] std::string nsec_data(const dns_name& name, const std::vector<dns_type>& existing) {
    std::string bits(32, '\0');
    for (const dns_type type : existing) {
        const auto number = static_cast<unsigned>(type);
        ENSURE(number < 256);
        bits[number / 8] =
            static_cast<char>(static_cast<unsigned char>(bits[number / 8]) | 0x80U >> number % 8);
    }
    bits.resize(bits.find_last_not_of('\0') + 1);
    std::string data = name.wire();
    data += '\0';
    data += static_cast<char>(bits.size());
    return data + bits;
}

class builder {
public:
    explicit builder(std::vector<owned_record>& into) : into_(into) {}

    void add_shared(const dns_name& name, const dns_name& target) {
        into_.push_back({.record = {.name = name,
                                    .type = dns_type::ptr,
                                    .ttl_seconds = limits::ttl_seconds_other,
                                    .data = target.wire()}});
    }
    void add_unique(name_owner owner, const dns_name& name, dns_type type, std::string data) {
        const bool names_host = owner == name_owner::host or type == dns_type::srv;
        into_.push_back(
            {.record = {.name = name,
                        .type = type,
                        .flushes_cache = true,
                        .ttl_seconds = names_host ? limits::ttl_seconds_host : limits::ttl_seconds_other,
                        .data = std::move(data)},
             .owner = owner,
             .is_negative = type == dns_type::nsec});
    }

private:
    std::vector<owned_record>& into_;
};

void add_service(builder& into, const advertised_service& service, const dns_name& host,
                 const std::string& instance) {
    const auto local = dns_name::parse("local");
    const auto enumeration = dns_name::parse("_services._dns-sd._udp.local");
    auto type = dns_name::parse(service.type);
    ENSURE(local and enumeration and type and type->append(*local), "constants of this program");
    dns_name own;
    if (not own.append(instance) or not own.append(*type)) return;
    std::vector<dns_type> existing{dns_type::txt};
    if (service.has_address) {
        into.add_shared(*enumeration, *type);
        into.add_shared(*type, own);
        into.add_unique(name_owner::instance, own, dns_type::srv, srv_data(service.port, host));
        existing.push_back(dns_type::srv);
    }
    into.add_unique(name_owner::instance, own, dns_type::txt, txt_data(service.texts));
    into.add_unique(name_owner::instance, own, dns_type::nsec, nsec_data(own, existing));
}

}  // namespace

std::vector<owned_record> records_for(const std::string& host, const std::string& instance,
                                      const std::vector<advertised_service>& services,
                                      const std::vector<link_address>& addresses) {
    std::vector<owned_record> records;
    builder into(records);
    dns_name host_name;
    if (not host_name.append(host) or not host_name.append("local")) return records;
    std::vector<dns_type> existing;
    std::size_t count = 0;
    for (const link_address& each : addresses) {
        if (++count > limits::addresses_per_link_max) break;
        const dns_type type = is_v4(each.address) ? dns_type::a : dns_type::aaaa;
        into.add_unique(name_owner::host, host_name, type, address_data(each.address));
        existing.push_back(type);
    }
    if (existing.empty()) return records;
    into.add_unique(name_owner::host, host_name, dns_type::nsec, nsec_data(host_name, existing));
    for (const advertised_service& service : services)
        add_service(into, service, host_name, instance);
    return records;
}

}  // namespace sluice::discovery
