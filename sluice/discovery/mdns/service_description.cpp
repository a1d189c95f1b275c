#include "sluice/discovery/mdns/service_description.hpp"

#include "sluice/base/ensure.hpp"

namespace sluice::discovery {

namespace {

constexpr std::size_t text_bytes_max = 255;
constexpr std::size_t share_name_bytes_max = 200;
constexpr std::size_t time_machine_shares_max = 8;  // so that the record fits a datagram
constexpr std::uint16_t discard_port = 9;           // _adisk._tcp has no server of its own

// Returns the texts of _adisk._tcp: the flags of the host (no wake-on-LAN address), and one text
// for each disk. Flag 0x82: reached over SMB, for Time Machine.
[[nodiscard]] std::vector<std::string> time_machine_texts(const std::vector<std::string>& shares) {
    std::vector<std::string> texts{"sys=waMa=0,adVF=0x100"};
    for (const std::string& share : shares) {
        if (share.size() > share_name_bytes_max or share.contains(',')) continue;
        if (texts.size() > time_machine_shares_max) break;
        texts.push_back("dk" + std::to_string(texts.size() - 1) + "=adVN=" + share + ",adVF=0x82");
    }
    return texts;
}

}  // namespace

std::vector<advertised_service> services_of(const service_description& description) {
    std::vector<advertised_service> services;
    services.push_back({.type = "_smb._tcp", .port = description.port, .texts = {}});
    services.push_back(
        {.type = "_device-info._tcp", .texts = {"model=" + description.model}, .has_address = false});
    if (std::vector<std::string> texts = time_machine_texts(description.time_machine_shares);
        texts.size() > 1)
        services.push_back({.type = "_adisk._tcp", .port = discard_port, .texts = std::move(texts)});
    return services;
}

std::string txt_data(const std::vector<std::string>& texts) {
    std::string data;
    for (const std::string& text : texts) {
        ENSURE(text.size() <= text_bytes_max, "a text of a TXT record has one byte for its length");
        data += static_cast<char>(text.size());
        data += text;
    }
    return data.empty() ? std::string(1, '\0') : data;
}

}  // namespace sluice::discovery
