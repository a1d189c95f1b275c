#include <expat.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <vector>

#include "sluice/base/ensure.hpp"
#include "sluice/discovery/limits.hpp"
#include "sluice/discovery/wsd/wsd_message.hpp"

namespace sluice::discovery {

namespace {

constexpr char separator = '|';
constexpr std::string_view soap = "http://www.w3.org/2003/05/soap-envelope|";
constexpr std::string_view addressing = "http://schemas.xmlsoap.org/ws/2004/08/addressing|";
constexpr std::string_view discovery_namespace = "http://schemas.xmlsoap.org/ws/2005/04/discovery|";

struct parser_deleter {
    void operator()(XML_Parser parser) const noexcept { XML_ParserFree(parser); }
};
using owned_parser = std::unique_ptr<XML_ParserStruct, parser_deleter>;

// Collects the texts of a request. Elements are identified by their whole path, so a name in
// another place has no meaning.
class collector {
public:
    explicit collector(XML_Parser parser) : parser_(parser) {
        XML_SetUserData(parser, this);
        XML_SetElementHandler(
            parser, [](void* self, const char* name, const char**) { of(self).begin(name); },
            [](void* self, const char*) { of(self).end(); });
        XML_SetCharacterDataHandler(parser, [](void* self, const char* text, int length) {
            of(self).add({text, static_cast<std::size_t>(length)});
        });
        XML_SetStartDoctypeDeclHandler(
            parser, [](void* self, const char*, const char*, const char*, int) { of(self).refuse(); });
        XML_SetStartNamespaceDeclHandler(
            parser, [](void* self, const char* prefix, const char* uri) { of(self).declare(prefix, uri); });
    }

    [[nodiscard]] std::optional<wsd_request> request() const {
        wsd_request made{.message_id = text_of("MessageID", addressing)};
        const std::string action = text_of("Action", addressing);
        if (action == "http://schemas.xmlsoap.org/ws/2005/04/discovery/Probe")
            made.action = wsd_action::probe;
        else if (action == "http://schemas.xmlsoap.org/ws/2005/04/discovery/Resolve")
            made.action = wsd_action::resolve;
        else if (action == "http://schemas.xmlsoap.org/ws/2004/09/transfer/Get")
            made.action = wsd_action::get;
        else
            return std::nullopt;
        if (is_refused_ or made.message_id.empty()) return std::nullopt;
        made.matches_types = matches_;
        made.has_scopes = not body_text_of({"Probe", "Scopes"}).empty();
        const auto found =
            texts_.find(body() + std::string(discovery_namespace) + "Resolve/" + std::string(addressing) +
                        "EndpointReference/" + std::string(addressing) + "Address/");
        if (found != texts_.end()) made.endpoint = trimmed(found->second);
        return made;
    }

private:
    static collector& of(void* self) noexcept { return *static_cast<collector*>(self); }

    void refuse() noexcept {
        is_refused_ = true;
        (void)XML_StopParser(parser_, XML_FALSE);
    }
    void declare(const char* prefix, const char* uri) {
        if (prefixes_.size() == limits::xml_prefixes_max) return refuse();
        const std::string_view name = prefix != nullptr ? prefix : "";
        const std::string_view value = uri != nullptr ? uri : "";
        if (name.size() > limits::xml_text_bytes_max or value.size() > limits::xml_text_bytes_max)
            return refuse();
        prefixes_.insert_or_assign(std::string(name), std::string(value));
    }
    void begin(std::string_view name) {
        if (lengths_.size() == limits::xml_depth_max or name.size() > limits::xml_text_bytes_max)
            return refuse();
        lengths_.push_back(path_.size());
        path_.append(name).append("/");
    }
    void end() {
        ENSURE(not lengths_.empty(), "elements are nested");
        if (path_ == body() + std::string(discovery_namespace) + "Probe/" + std::string(discovery_namespace) +
                         "Types/")
            matches_ = matches_types(texts_[path_]);  // while the prefixes are declared
        path_.resize(lengths_.back());
        lengths_.pop_back();
    }
    void add(std::string_view text) {
        const bool is_wanted = path_.contains("|MessageID/") or path_.contains("|Action/") or
                               path_.contains("|Address/") or path_.contains("|Types/") or
                               path_.contains("|Scopes/");
        if (not is_wanted) return;
        std::string& into = texts_[path_];
        if (text.size() > limits::xml_text_bytes_max - into.size()) return refuse();
        into += text;
    }

    [[nodiscard]] static std::string body() {
        return std::string(soap) + "Envelope/" + std::string(soap) + "Body/";
    }
    [[nodiscard]] static std::string trimmed(std::string_view text) {
        constexpr std::string_view spaces = " \t\r\n";
        const std::size_t first = text.find_first_not_of(spaces);
        if (first == std::string_view::npos) return {};
        return std::string(text.substr(first, text.find_last_not_of(spaces) - first + 1));
    }
    [[nodiscard]] std::string text_of(std::string_view name, std::string_view where) const {
        const auto found = texts_.find(std::string(soap) + "Envelope/" + std::string(soap) + "Header/" +
                                       std::string(where) + std::string(name) + "/");
        return found == texts_.end() ? std::string() : trimmed(found->second);
    }
    [[nodiscard]] std::string body_text_of(std::initializer_list<std::string_view> names) const {
        std::string path = body();
        for (const std::string_view each : names)
            path.append(discovery_namespace).append(each).append("/");
        const auto found = texts_.find(path);
        return found == texts_.end() ? std::string() : trimmed(found->second);
    }
    // Returns whether each of the qualified names is a type of ours.
    [[nodiscard]] bool matches_types(std::string_view types) const {
        constexpr std::string_view spaces = " \t\r\n";
        for (;;) {
            types.remove_prefix(std::min(types.find_first_not_of(spaces), types.size()));
            if (types.empty()) return true;
            const std::string_view type = types.substr(0, types.find_first_of(spaces));
            types.remove_prefix(type.size());
            const std::size_t colon = type.find(':');
            const std::string prefix(colon == std::string_view::npos ? "" : type.substr(0, colon));
            const std::string_view local = colon == std::string_view::npos ? type : type.substr(colon + 1);
            const auto uri = prefixes_.find(prefix);
            const bool is_device = uri != prefixes_.end() and local == "Device" and
                                   uri->second == "http://schemas.xmlsoap.org/ws/2006/02/devprof";
            const bool is_computer = uri != prefixes_.end() and local == "Computer" and
                                     uri->second == "http://schemas.microsoft.com/windows/pub/2005/07";
            if (not is_device and not is_computer) return false;
        }
    }

    XML_Parser parser_;
    std::string path_;  // names with namespaces, each with a slash
    std::vector<std::size_t> lengths_;
    std::map<std::string, std::string> texts_;     // by path
    std::map<std::string, std::string> prefixes_;  // the latest declaration of each
    bool matches_ = true;
    bool is_refused_ = false;
};

}  // namespace

std::optional<wsd_request> parse_wsd_request(std::string_view xml) {
    if (xml.size() > limits::wsd_message_bytes_max) return std::nullopt;
    const owned_parser parser(XML_ParserCreateNS(nullptr, separator));
    if (parser == nullptr) return std::nullopt;
    collector into(parser.get());
    if (XML_Parse(parser.get(), xml.data(), static_cast<int>(xml.size()), XML_TRUE) != XML_STATUS_OK)
        return std::nullopt;
    return into.request();
}

}  // namespace sluice::discovery
