#include "sluice/cli/migration/smb_conf.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include "sluice/base/case_fold.hpp"
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

// Names of [global], which ignore white space; those of other sections do not.
[[nodiscard]] bool is_global(std::string_view section) {
    const std::string name = compact(section);
    return name == "global" or name == "globals";
}

// Returns the value as Samba reads it: one character for each run of white space.
[[nodiscard]] std::string collapsed(std::string_view value) {
    std::string text;
    for (const char c : value)
        if (not is_space(c) or (not text.empty() and not is_space(text.back()))) text += c;
    return text;
}

// Returns the name of a section. A blank at its beginning or end is a part of it.
[[nodiscard]] std::string with_single_spaces(std::string_view name) {
    std::string text;
    for (const char c : name)
        if (not is_space(c) or text.empty() or text.back() != ' ') text += is_space(c) ? ' ' : c;
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
    synonym{"root", "rootdirectory"},
    synonym{"rootdir", "rootdirectory"},
};

// Reads one configuration. The include in progress is `open_files_`, so that a cycle is found.
class reader {
public:
    explicit reader(const smb_conf_source& source) : source_(source) {
        result_.sections.push_back({.name = "global"});
    }

    void read(const std::string& path, std::string_view content) {
        if (content.size() > file_bytes_max) {
            lack_restriction_of_all();
            return refuse({path, 0}, "larger than 1 MiB; split it");
        }
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
    // Returns the continuation of a line with one of its blanks at most.
    [[nodiscard]] static std::string_view joined(std::string_view part, std::string_view line) noexcept {
        const std::string_view text = trimmed(part);
        const bool has_blank = text.size() != part.size() and not part.empty() and is_space(part.front());
        if (text.empty()) return {};
        const auto begin = static_cast<std::size_t>(text.data() - part.data());
        const bool keeps_blank = has_blank and (line.empty() or not is_space(line.back()));
        return part.substr(keeps_blank ? begin - 1 : begin);
    }

    // Removes a line with its continuations from `content`, and returns as much as `fits`. A remark
    // has none. White space may follow the backslash.
    [[nodiscard]] static std::string next_line(std::string_view& content, unsigned& number, bool& fits) {
        std::string whole;
        bool is_first = true;
        for (bool continues = true; continues and not content.empty(); is_first = false) {
            const std::size_t end = content.find('\n');
            std::string_view part = content.substr(0, end);
            content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
            ++number;
            if (part.ends_with('\r')) part.remove_suffix(1);
            const std::string_view text = trimmed(part);
            const bool is_remark = is_first and (text.starts_with(';') or text.starts_with('#'));
            continues = text.ends_with('\\') and not is_remark;
            if (continues) part = part.substr(0, part.rfind('\\'));
            if (not is_first) part = joined(part, whole);
            fits = fits and part.size() <= line_bytes_max - whole.size();
            whole += part.substr(0, line_bytes_max - whole.size());
        }
        return whole;
    }

    // A share without a line that restricts access would be open to more users. A line that begins
    // a section, or a file that may have such lines, can concern every share.
    void lack_restriction() {
        if (current_) result_.sections[*current_].lacks_restriction = true;
    }
    void lack_restriction_of_all() { result_.sections.front().lacks_restriction = true; }

    void refuse_line(std::string_view line, smb_place place, std::string text) {
        const std::string name = canonical_smb_name(line.substr(0, line.find('='))).name;
        constexpr std::array<std::string_view, 3> harmless{"comment", "serverstring", "volume"};
        if (std::ranges::find(harmless, name) == harmless.end()) lack_restriction();
        if (trimmed(line).starts_with('[')) {
            lack_restriction_of_all();
            current_.reset();
        }
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
        leave_section();
        current_.reset();
        if (trimmed(name).empty()) {
            lack_restriction_of_all();
            return refuse(std::move(place), "a section with an invalid name is ignored; write it as [NAME]");
        }
        if (is_global(name)) {
            current_ = 0;
            return;
        }
        if (const auto known = section_numbers_.find(fold(name)); known != section_numbers_.end()) {
            current_ = known->second;
            return;
        }
        if (result_.sections.size() == sections_max)
            return refuse(std::move(place),
                          fmt::format("more than {} sections; the rest is ignored", sections_max));
        current_ = result_.sections.size();
        section_numbers_.emplace(fold(name), *current_);
        result_.sections.push_back(
            {.name = std::string(trimmed(name)), .place = std::move(place), .order = next_order_++});
    }

    // A share that has no path when the next section begins stays unavailable, also if it gets one
    // when it comes again.
    void leave_section() {
        if (not current_ or *current_ == 0) return;
        const smb_section& section = result_.sections[*current_];
        if (canonical_smb_name(section.name).name == "homes") return;  // it needs no path
        const auto has = [&](std::string_view name) {
            const smb_parameter* const own = section.find(name);
            const smb_parameter* const given =
                own != nullptr ? own : result_.sections[0].find_before(name, section.order);
            return given != nullptr and not given->value.empty();
        };
        if (has("path") or has("msdfsproxy")) return;
        smb_place place = section.place;
        add({.name = "available", .value = "no", .place = std::move(place), .shown = "available"});
    }

    void set(std::string_view shown, std::string_view value, smb_place place) {
        if (not current_) return;  // the section is ignored
        smb_name name = canonical_smb_name(shown);
        if (name.name == "include") return include(collapsed(value), std::move(place));
        if (name.name == "copy") return copy(value, place);
        std::string text = collapsed(value);
        if (name.is_opposite) {
            const auto is = smb_boolean(value);
            if (not is)
                return refuse_line(shown, std::move(place),
                                   fmt::format("invalid value '{}' for {}: {}", value, shown, is.error()));
            text = *is ? "no" : "yes";
        }
        add({.name = std::move(name.name),
             .value = std::move(text),
             .place = std::move(place),
             .shown = with_single_spaces(trimmed(shown))});
    }

    void add(smb_parameter parameter) {
        std::vector<smb_parameter>& own = result_.sections[*current_].parameters;
        const auto known = parameter_numbers_.find({*current_, parameter.name});
        const bool is_new = known == parameter_numbers_.end();
        parameter.order = next_order_++;
        // A section keeps the values that [global] had when it began.
        const bool is_kept = not is_new and * current_ == 0 and result_.sections.size() > 1;
        if ((is_new or is_kept) and parameter_numbers_.size() + earlier_values_ == parameters_max)
            return refuse_line(std::string(parameter.name), std::move(parameter.place),
                               fmt::format("more than {} parameters; the rest is ignored", parameters_max));
        if (is_kept) {
            ++earlier_values_;
            result_.sections[0].earlier[parameter.name].push_back(std::move(own[known->second]));
        }
        if (not is_new) {
            own[known->second] = std::move(parameter);
            return;
        }
        parameter_numbers_.emplace(std::pair(*current_, parameter.name), own.size());
        own.push_back(std::move(parameter));
    }

    void include(const std::string& path, smb_place place) {
        const auto refuse_file = [&](std::string text) {
            lack_restriction_of_all();
            refuse(std::move(place), std::move(text));
        };
        if (compact(path) == "registry")
            return refuse_file("the registry is not read; run 'testparm -s' and import its output");
        if (path.contains('%'))
            return refuse_file(fmt::format("'{}' depends on the client; it is not read", path));
        if (std::ranges::find(open_files_, path) != open_files_.end())
            return refuse_file(fmt::format("'{}' includes itself; it is not read again", path));
        if (open_files_.size() == include_depth_max or files_ == files_max)
            return refuse_file(fmt::format("more than {} nested or {} included files; '{}' is not read",
                                           include_depth_max, files_max, path));
        const auto content = source_(path);
        if (not content) return refuse_file(fmt::format("a file is not included: {}", content.error()));
        read(path, *content);
    }

    // The copied section comes before this one. The section has its parameters, and the defaults
    // that it has from [global], except those that it sets itself.
    void copy(std::string_view name, smb_place place) {
        const auto from = section_numbers_.find(fold(with_single_spaces(trimmed(name))));
        smb_section& to = result_.sections[*current_];
        const auto refuse_copy = [&](std::string text) {
            lack_restriction();
            refuse(std::move(place), std::move(text));
        };
        if (from == section_numbers_.end() or from->second == *current_ or *current_ == 0)
            return refuse_copy(fmt::format("copy: no section '{}' before this one", name));
        if (to.is_copy) return refuse_copy("a section can copy one other only; combine them");
        const smb_section& source = result_.sections[from->second];
        to.is_copy = true;
        to.order = source.order;
        to.lacks_restriction = to.lacks_restriction or source.lacks_restriction;
        const std::vector<smb_parameter> copied = source.parameters;
        for (const smb_parameter& each : copied)
            if (not parameter_numbers_.contains({*current_, each.name})) add(each);
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
    std::size_t next_order_ = 1;
    std::size_t earlier_values_ = 0;
    // By folded name, without [global].
    std::map<std::string, std::size_t> section_numbers_;
    // By section and name: the place in the section.
    std::map<std::pair<std::size_t, std::string>, std::size_t> parameter_numbers_;
};

}  // namespace

const smb_parameter* smb_section::find(std::string_view wanted) const noexcept {
    const auto found = std::ranges::find(parameters, wanted, &smb_parameter::name);
    return found == parameters.end() ? nullptr : &*found;
}

const smb_parameter* smb_section::find_before(std::string_view wanted, std::size_t when) const noexcept {
    const smb_parameter* const last = find(wanted);
    if (last == nullptr or last->order < when) return last;
    const auto replaced = earlier.find(wanted);
    if (replaced == earlier.end()) return nullptr;
    const std::vector<smb_parameter>& all = replaced->second;
    const auto next = std::ranges::lower_bound(all, when, {}, &smb_parameter::order);
    return next == all.begin() ? nullptr : &*std::prev(next);
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

std::string smb_word(std::string_view value) {
    return compact(value);
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
