#include "sluice/cli/migration/smb_conf.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include "sluice/smb/wire/utf16.hpp"

namespace sluice::cli {
namespace {

using namespace smb_conf_limits;

[[nodiscard]] bool is_space(char c) noexcept {
    return c == ' ' or c == '\t' or c == '\r' or c == '\v' or c == '\f';
}

[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept {
    while (not text.empty() and is_space(text.front()))
        text.remove_prefix(1);
    while (not text.empty() and is_space(text.back()))
        text.remove_suffix(1);
    return text;
}

[[nodiscard]] char lower(char c) noexcept {
    return c >= 'A' and c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Returns the name in lower case without white space.
[[nodiscard]] std::string compact(std::string_view name) {
    std::string text;
    for (const char c : name)
        if (not is_space(c)) text += lower(c);
    return text;
}

[[nodiscard]] std::string with_single_spaces(std::string_view name) {
    std::string text;
    for (const char c : trimmed(name))
        if (not is_space(c) or (not text.empty() and text.back() != ' ')) text += is_space(c) ? ' ' : c;
    return text;
}

struct synonym {
    std::string_view from;
    std::string_view to;
    bool is_opposite = false;
};

// Names of one parameter. Those that are not here have one name.
constexpr std::array synonyms{
    synonym{"writeable", "readonly", true},
    synonym{"writable", "readonly", true},
    synonym{"writeok", "readonly", true},
    synonym{"browsable", "browseable"},
    synonym{"public", "guestok"},
    synonym{"allowhosts", "hostsallow"},
    synonym{"denyhosts", "hostsdeny"},
    synonym{"directory", "path"},
    synonym{"createmode", "createmask"},
    synonym{"directorymode", "directorymask"},
    synonym{"group", "forcegroup"},
    synonym{"printok", "printable"},
    synonym{"vfsobject", "vfsobjects"},
    synonym{"minprotocol", "serverminprotocol"},
    synonym{"maxprotocol", "servermaxprotocol"},
    synonym{"protocol", "servermaxprotocol"},
    synonym{"user", "username"},
    synonym{"users", "username"},
    synonym{"onlyguest", "guestonly"},
    synonym{"debuglevel", "loglevel"},
    synonym{"smbencrypt", "serversmbencrypt"},
    synonym{"default", "defaultservice"},
    synonym{"autoservices", "preload"},
    synonym{"casesignames", "casesensitive"},
};

// Reads one configuration. The include in progress is `open_files_`, so that a cycle is found.
class reader {
public:
    explicit reader(const smb_conf_source& source) : source_(source) {
        result_.sections.push_back({.name = "global"});
        section_numbers_.emplace("global", 0);
    }

    void read(const std::string& path, std::string_view content) {
        if (content.size() > file_bytes_max) return refuse({path, 0}, "larger than 1 MiB; split it");
        open_files_.push_back(path);
        ++files_;
        unsigned number = 0;
        while (not content.empty()) {
            const unsigned first = number + 1;
            bool fits = true;
            const std::string line = next_line(content, number, fits);
            if (fits)
                read_line(trimmed(line), {path, first});
            else
                refuse_line(line, {path, first},
                            fmt::format("a line of more than {} bytes is ignored", line_bytes_max));
        }
        open_files_.pop_back();
    }

    [[nodiscard]] smb_conf take() { return std::move(result_); }

private:
    // Removes a line with its continuations from `content`, and returns as much as `fits`.
    [[nodiscard]] static std::string next_line(std::string_view& content, unsigned& number, bool& fits) {
        std::string whole;
        for (bool continues = true; continues and not content.empty();) {
            const std::size_t end = content.find('\n');
            std::string_view part = content.substr(0, end);
            content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
            ++number;
            if (part.ends_with('\r')) part.remove_suffix(1);
            continues = part.ends_with('\\');
            if (continues) part.remove_suffix(1);
            if (not whole.empty()) part = trimmed(part);
            fits = fits and part.size() <= line_bytes_max - whole.size();
            whole += part.substr(0, line_bytes_max - whole.size());
        }
        return whole;
    }

    // A section without a line that restricts access would be open to more users.
    void refuse_line(std::string_view line, smb_place place, std::string text) {
        const std::string name = canonical_smb_name(line.substr(0, line.find('='))).name;
        constexpr std::array<std::string_view, 9> restrictions{"validusers", "invalidusers", "readlist",
                                                               "writelist",  "readonly",     "hostsallow",
                                                               "hostsdeny",  "path",         "available"};
        if (current_ and std::ranges::find(restrictions, name) != restrictions.end())
            result_.sections[*current_].lacks_restriction = true;
        if (trimmed(line).starts_with('[')) current_.reset();
        refuse(std::move(place), std::move(text));
    }

    void read_line(std::string_view line, smb_place place) {
        if (line.empty() or line.starts_with('#') or line.starts_with(';')) return;
        if (std::ranges::any_of(line,
                                [](char c) { return static_cast<unsigned char>(c) < 0x20 and c != '\t'; }))
            return refuse_line(line, std::move(place), "a line with control characters is ignored");
        if (not smb::wire::utf16_bytes_of(line))
            return refuse_line(line, std::move(place),
                               "a line that is not UTF-8 is ignored; convert the file with iconv(1)");
        if (line.starts_with('[')) return begin_section(line, std::move(place));
        const std::size_t equals = line.find('=');
        const std::string_view shown = trimmed(line.substr(0, equals));
        if (equals == std::string_view::npos or shown.empty())
            return refuse(
                std::move(place),
                "a line that is neither a section nor NAME = VALUE is ignored; correct or remove it");
        set(shown, trimmed(line.substr(equals + 1)), std::move(place));
    }

    void begin_section(std::string_view line, smb_place place) {
        const std::size_t end = line.find(']');
        std::string name = end == std::string_view::npos ? "" : with_single_spaces(line.substr(1, end - 1));
        current_.reset();
        if (name.empty())
            return refuse(std::move(place), "a section with an invalid name is ignored; write it as [NAME]");
        if (const auto known = section_numbers_.find(compact(name)); known != section_numbers_.end()) {
            current_ = known->second;
            return;
        }
        if (result_.sections.size() == sections_max)
            return refuse(std::move(place),
                          fmt::format("more than {} sections; the rest is ignored", sections_max));
        current_ = result_.sections.size();
        section_numbers_.emplace(compact(name), *current_);
        result_.sections.push_back({.name = std::move(name), .place = std::move(place)});
    }

    void set(std::string_view shown, std::string_view value, smb_place place) {
        if (not current_) return;  // the section is ignored
        smb_name name = canonical_smb_name(shown);
        if (name.name == "include") return include(std::string(value), std::move(place));
        if (name.name == "copy") return copy(value, place);
        std::string text(value);
        if (name.is_opposite) {
            const auto is = smb_boolean(value);
            if (not is)
                return refuse(std::move(place),
                              fmt::format("invalid value '{}' for {}: {}", value, shown, is.error()));
            text = *is ? "no" : "yes";
        }
        add({.name = std::move(name.name),
             .value = std::move(text),
             .place = std::move(place),
             .shown = with_single_spaces(shown)});
    }

    void add(smb_parameter parameter) {
        std::vector<smb_parameter>& own = result_.sections[*current_].parameters;
        const auto known = parameter_numbers_.find({*current_, parameter.name});
        if (known != parameter_numbers_.end()) {
            own[known->second] = std::move(parameter);
            return;
        }
        if (parameter_numbers_.size() == parameters_max)
            return refuse_line(std::string(parameter.name), std::move(parameter.place),
                               fmt::format("more than {} parameters; the rest is ignored", parameters_max));
        parameter_numbers_.emplace(std::pair(*current_, parameter.name), own.size());
        own.push_back(std::move(parameter));
    }

    void include(const std::string& path, smb_place place) {
        if (compact(path) == "registry")
            return refuse(std::move(place),
                          "the registry is not read; run 'testparm -s' and import its output");
        if (path.contains('%'))
            return refuse(std::move(place), fmt::format("'{}' depends on the client; it is not read", path));
        if (std::ranges::find(open_files_, path) != open_files_.end())
            return refuse(std::move(place), fmt::format("'{}' includes itself; it is not read again", path));
        if (open_files_.size() == include_depth_max or files_ == files_max)
            return refuse(std::move(place),
                          fmt::format("more than {} nested or {} included files; '{}' is not read",
                                      include_depth_max, files_max, path));
        const auto content = source_(path);
        if (not content)
            return refuse(std::move(place), fmt::format("a file is not included: {}", content.error()));
        read(path, *content);
    }

    // The copied section comes before this one.
    void copy(std::string_view name, const smb_place& place) {
        const auto from = section_numbers_.find(compact(name));
        if (copies_ == sections_max)
            return refuse(place, fmt::format("more than {} copies; the rest is ignored", sections_max));
        if (from != section_numbers_.end() and from->second != *current_) {
            ++copies_;
            const std::vector<smb_parameter> copied = result_.sections[from->second].parameters;
            for (const smb_parameter& each : copied)
                if (not parameter_numbers_.contains({*current_, each.name})) add(each);
            return;
        }
        refuse(place, fmt::format("copy: no section '{}' before this one", name));
    }

    void refuse(smb_place place, std::string text) {
        if (result_.problems.size() < problems_max)
            result_.problems.push_back({.place = std::move(place), .text = std::move(text)});
    }

    const smb_conf_source& source_;
    smb_conf result_;
    std::optional<std::size_t> current_ = 0;  // none: a section that is ignored
    std::vector<std::string> open_files_;
    std::size_t files_ = 0;
    std::size_t copies_ = 0;
    // By compact name.
    std::map<std::string, std::size_t> section_numbers_;
    // By section and name: the place in the section.
    std::map<std::pair<std::size_t, std::string>, std::size_t> parameter_numbers_;
};

}  // namespace

const smb_parameter* smb_section::find(std::string_view wanted) const noexcept {
    const auto found = std::ranges::find(parameters, wanted, &smb_parameter::name);
    return found == parameters.end() ? nullptr : &*found;
}

smb_conf parse_smb_conf(const std::string& path, std::string_view content, const smb_conf_source& source) {
    reader reading(source);
    reading.read(path, content);
    return reading.take();
}

smb_name canonical_smb_name(std::string_view shown) {
    const std::string name = compact(shown);
    for (const synonym& each : synonyms)
        if (each.from == name) return {.name = std::string(each.to), .is_opposite = each.is_opposite};
    return {.name = name};
}

std::expected<bool, std::string> smb_boolean(std::string_view value) {
    const std::string word = compact(value);
    if (word == "yes" or word == "true" or word == "on" or word == "1") return true;
    if (word == "no" or word == "false" or word == "off" or word == "0") return false;
    return std::unexpected("use yes or no");
}

std::vector<std::string> smb_list(std::string_view value) {
    std::vector<std::string> list;
    std::string element;
    bool is_quoted = false;
    for (const char c : value) {
        const bool separates = not is_quoted and (is_space(c) or c == ',' or c == ';');
        if (c == '"') is_quoted = not is_quoted;
        if (separates and not element.empty()) list.push_back(std::exchange(element, {}));
        if (not separates and c != '"') element += c;
    }
    if (not element.empty()) list.push_back(std::move(element));
    return list;
}

std::expected<std::string, std::string> smb_substituted(std::string_view value, std::string_view share) {
    std::string text;
    for (std::size_t i = 0; i != value.size(); ++i) {
        if (value[i] != '%') {
            text += value[i];
            continue;
        }
        const char next = i + 1 == value.size() ? '\0' : value[++i];
        if (next == '%')
            text += '%';
        else if (next == 'S')
            text += share;
        else
            return std::unexpected(next == '\0' ? std::string("%") : std::string("%") + next);
    }
    return text;
}

}  // namespace sluice::cli
