#include "sluice/discovery/wsd/wsd_message.hpp"

namespace sluice::discovery {

namespace {

constexpr std::string_view to_group = "urn:schemas-xmlsoap-org:ws:2005:04:discovery";
constexpr std::string_view to_sender = "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous";
constexpr std::string_view discovery_actions = "http://schemas.xmlsoap.org/ws/2005/04/discovery/";

[[nodiscard]] std::string element(std::string_view name, std::string_view content) {
    const std::string text(name);
    return "<" + text + ">" + std::string(content) + "</" + text.substr(0, text.find(' ')) + ">";
}

[[nodiscard]] std::string envelope(const wsd_facts& facts, const wsd_envelope& with, std::string_view to,
                                   const std::string& action, const std::string& body) {
    std::string header = element("wsa:To", to) + element("wsa:Action", action) +
                         element("wsa:MessageID", xml_escaped(with.message_id));
    if (not with.relates_to.empty()) header += element("wsa:RelatesTo", xml_escaped(with.relates_to));
    header += "<wsd:AppSequence InstanceId=\"" + std::to_string(facts.instance) + "\" MessageNumber=\"" +
              std::to_string(with.number) + "\"/>";
    return "<?xml version=\"1.0\" encoding=\"utf-8\"?>"
           "<soap:Envelope xmlns:soap=\"http://www.w3.org/2003/05/soap-envelope\""
           " xmlns:wsa=\"http://schemas.xmlsoap.org/ws/2004/08/addressing\""
           " xmlns:wsd=\"http://schemas.xmlsoap.org/ws/2005/04/discovery\""
           " xmlns:wsx=\"http://schemas.xmlsoap.org/ws/2004/09/mex\""
           " xmlns:wsdp=\"http://schemas.xmlsoap.org/ws/2006/02/devprof\""
           " xmlns:pub=\"http://schemas.microsoft.com/windows/pub/2005/07\">" +
           element("soap:Header", header) + element("soap:Body", body) + "</soap:Envelope>";
}

[[nodiscard]] std::string endpoint_of(const wsd_facts& facts) {
    return element("wsa:EndpointReference", element("wsa:Address", xml_escaped(facts.endpoint)));
}

[[nodiscard]] std::string presence(const wsd_facts& facts, std::string_view address) {
    return endpoint_of(facts) + element("wsd:Types", "wsdp:Device pub:Computer") +
           element("wsd:XAddrs", xml_escaped(address)) + element("wsd:MetadataVersion", "1");
}

[[nodiscard]] std::string section(std::string_view dialect, const std::string& content) {
    return element("wsx:MetadataSection Dialect=\"http://schemas.xmlsoap.org/ws/2006/02/devprof/" +
                       std::string(dialect) + "\"",
                   content);
}

}  // namespace

std::string xml_escaped(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        switch (c) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            default:
                if (static_cast<unsigned char>(c) >= 0x20) escaped += c;
        }
    }
    return escaped;
}

std::string wsd_hello(const wsd_facts& facts, const wsd_envelope& with, std::string_view address) {
    return envelope(facts, with, to_group, std::string(discovery_actions) + "Hello",
                    element("wsd:Hello", presence(facts, address)));
}

std::string wsd_bye(const wsd_facts& facts, const wsd_envelope& with) {
    return envelope(facts, with, to_group, std::string(discovery_actions) + "Bye",
                    element("wsd:Bye", endpoint_of(facts)));
}

std::string wsd_match(const wsd_facts& facts, const wsd_envelope& with, wsd_action of,
                      std::string_view address) {
    const std::string name = of == wsd_action::probe ? "Probe" : "Resolve";
    return envelope(
        facts, with, to_sender, std::string(discovery_actions) + name + "Matches",
        element("wsd:" + name + "Matches", element("wsd:" + name + "Match", presence(facts, address))));
}

std::string wsd_description(const wsd_facts& facts, const wsd_envelope& with) {
    const std::string computer = xml_escaped(facts.computer);
    const std::string device = element(
        "wsdp:ThisDevice", element("wsdp:FriendlyName", "sluice on " + computer) +
                               element("wsdp:FirmwareVersion", "1.0") + element("wsdp:SerialNumber", "1"));
    const std::string model = element(
        "wsdp:ThisModel", element("wsdp:Manufacturer", "sluice") + element("wsdp:ModelName", "sluice") +
                              element("pnpx:DeviceCategory xmlns:pnpx=\"http://schemas.microsoft.com/"
                                      "windows/pnpx/2005/10\"",
                                      "Computers"));
    const std::string host = element(
        "wsdp:Host", endpoint_of(facts) + element("wsdp:Types", "pub:Computer") +
                         element("wsdp:ServiceId", xml_escaped(facts.endpoint)) +
                         element("pub:Computer", computer + "/Workgroup:" + xml_escaped(facts.workgroup)));
    const std::string relationship =
        element("wsdp:Relationship Type=\"http://schemas.xmlsoap.org/ws/2006/02/devprof/host\"", host);
    return envelope(facts, with, to_sender, "http://schemas.xmlsoap.org/ws/2004/09/transfer/GetResponse",
                    element("wsx:Metadata", section("ThisDevice", device) + section("ThisModel", model) +
                                                section("Relationship", relationship)));
}

}  // namespace sluice::discovery
