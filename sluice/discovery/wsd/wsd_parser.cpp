#include <expat.h>

#include <algorithm>
#include <array>
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

// The texts that a request may have.
enum class wanted_text : std::uint8_t { message_id, action, types, scopes, endpoint, none };

// Elements are identified by their whole path, so a name in another place has no meaning. The index
// of a path is its wanted_text.
[[nodiscard]] const std::array<std::string, 5>& wanted_paths() {
    static const std::array<std::string, 5> paths = [] {
        const auto path_of = [](auto... parts) {
            std::string path;
            (path.append(parts), ...);
            return path;
        };
        const std::string head = path_of(soap, "Envelope/", soap, "Header/", addressing);
        const std::string body = path_of(soap, "Envelope/", soap, "Body/", discovery_namespace);
        const std::string endpoint =
            path_of(body, "Resolve/", addressing, "EndpointReference/", addressing, "Address/");
        return std::array{head + "MessageID/", head + "Action/",
                          path_of(body, "Probe/", discovery_namespace, "Types/"),
                          path_of(body, "Probe/", discovery_namespace, "Scopes/"), endpoint};
    }();
    return paths;
}

// Collects the texts of a request. Expat may call the handlers after it was told to stop, so each
// of them tests whether the request is refused.
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
        wsd_request made{.message_id = text_of(wanted_text::message_id)};
        const std::string action = text_of(wanted_text::action);
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
        made.has_scopes = not text_of(wanted_text::scopes).empty();
        made.endpoint = text_of(wanted_text::endpoint);
        return made;
    }

private:
    struct level {
        std::size_t parent_length = 0;  // the path before this element
        wanted_text text = wanted_text::none;
    };

    static collector& of(void* self) noexcept { return *static_cast<collector*>(self); }

    void refuse() noexcept {
        is_refused_ = true;
        (void)XML_StopParser(parser_, XML_FALSE);
    }
    void declare(const char* prefix, const char* uri) {
        if (is_refused_) return;
        if (prefixes_.size() == limits::xml_prefixes_max) return refuse();
        const std::string_view name = prefix != nullptr ? prefix : "";
        const std::string_view value = uri != nullptr ? uri : "";
        if (name.size() > limits::xml_text_bytes_max or value.size() > limits::xml_text_bytes_max)
            return refuse();
        prefixes_.insert_or_assign(std::string(name), std::string(value));
    }
    void begin(std::string_view name) {
        if (is_refused_) return;
        if (levels_.size() == limits::xml_depth_max or ++elements_ > limits::xml_elements_max or
            name.size() >= limits::xml_path_bytes_max - path_.size())
            return refuse();
        level entered{.parent_length = path_.size()};
        path_.append(name).append("/");
        const auto known = std::ranges::find(wanted_paths(), path_);
        entered.text = static_cast<wanted_text>(known - wanted_paths().begin());
        levels_.push_back(entered);
    }
    void end() {
        if (is_refused_) return;
        ENSURE(not levels_.empty(), "elements are nested");
        if (levels_.back().text == wanted_text::types)
            matches_ = matches_types(text_of(wanted_text::types));  // the prefixes are declared now
        path_.resize(levels_.back().parent_length);
        levels_.pop_back();
    }
    void add(std::string_view text) {
        if (is_refused_ or levels_.empty() or levels_.back().text == wanted_text::none) return;
        std::string& into = texts_[static_cast<std::size_t>(levels_.back().text)];
        if (text.size() > limits::xml_text_bytes_max - into.size()) return refuse();
        into += text;
    }

    [[nodiscard]] static std::string trimmed(std::string_view text) {
        constexpr std::string_view spaces = " \t\r\n";
        const std::size_t first = text.find_first_not_of(spaces);
        if (first == std::string_view::npos) return {};
        return std::string(text.substr(first, text.find_last_not_of(spaces) - first + 1));
    }
    [[nodiscard]] std::string text_of(wanted_text which) const {
        return trimmed(texts_[static_cast<std::size_t>(which)]);
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
    std::vector<level> levels_;
    std::size_t elements_ = 0;
    std::array<std::string, 5> texts_;             // by wanted_text
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
