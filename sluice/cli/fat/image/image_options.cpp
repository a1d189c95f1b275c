#include "sluice/cli/fat/image/image_options.hpp"
#include "sluice/cli/command_line.hpp"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace sluice::cli {
namespace {

constexpr std::array<std::pair<std::string_view, fat::code_page>, 10> pages{{
    {"ascii", fat::code_page::ascii},
    {"437", fat::code_page::cp437},
    {"850", fat::code_page::cp850},
    {"852", fat::code_page::cp852},
    {"866", fat::code_page::cp866},
    {"1252", fat::code_page::cp1252},
    {"932", fat::code_page::cp932},
    {"936", fat::code_page::cp936},
    {"949", fat::code_page::cp949},
    {"950", fat::code_page::cp950},
}};

std::optional<int> number(std::string_view digits) {
    int value = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value);
    return digits.size() == 2 and parsed.ec == std::errc{} and parsed.ptr == end and value >= 0
               ? std::optional(value)
               : std::nullopt;
}

// Parses "host", "utc", or an offset as in +05:30.
std::optional<fat::time_zone> zone_of(std::string_view text) {
    if (text.empty() or text == "host") return fat::time_zone::host();
    if (text == "utc" or text == "UTC") return fat::time_zone::utc();
    if (text.size() != 6 or (text[0] != '+' and text[0] != '-') or text[3] != ':') return std::nullopt;
    const auto hours = number(text.substr(1, 2));
    const auto minutes = number(text.substr(4, 2));
    if (not hours or not minutes or *hours > 14 or *minutes > 59) return std::nullopt;
    const std::chrono::minutes offset(*hours * 60 + *minutes);
    return fat::time_zone::fixed(text[0] == '-' ? -offset : offset);
}

std::string validate_time_zone(const std::string& text) {
    return zone_of(text) ? "" : "use host, utc, or an offset as in +05:30";
}

// Returns null if there is no such code page.
const fat::code_page* page_of(std::string_view name) {
    const auto* const found = std::ranges::find(pages, name, [](const auto& each) { return each.first; });
    return found == pages.end() ? nullptr : &found->second;
}

std::string validate_code_page(const std::string& name) {
    const fat::code_page* const page = page_of(name);
    if (page == nullptr) return "use ascii, 437, 850, 852, 866, 1252, 932, 936, 949, or 950";
    return fat::is_available(*page) ? "" : "use another one, which iconv(3) on this system supports";
}

}  // namespace

std::expected<fat::mount_options, std::string> mount_options_of(const image_options& options) {
    fat::mount_options made;
    const auto refuse = [](const std::string& value, const char* name, const std::string& rule) {
        return std::unexpected(fmt::format("invalid value '{}' for {}: {}", value, name, rule));
    };
    if (not options.code_page.empty()) {
        if (const std::string rule = validate_code_page(options.code_page); not rule.empty())
            return refuse(options.code_page, "code-page", rule);
        made.page = *page_of(options.code_page);
    }
    const auto zone = zone_of(options.time_zone);
    if (not zone) return refuse(options.time_zone, "time-zone", validate_time_zone(options.time_zone));
    made.zone = *zone;
    return made;
}

std::string text_of(const image_options& options) {
    std::string text;
    if (not options.overlay.empty()) text += " --overlay " + options.overlay;
    if (options.journal) text += " --journal";
    if (not options.code_page.empty()) text += " --code-page " + options.code_page;
    if (not options.time_zone.empty()) text += " --time-zone " + options.time_zone;
    return text;
}

option_syntax add_overlay_option(command_syntax command, image_options& options, const char* what) {
    return command.add_option("--overlay", options.overlay, what).value_name("FILE").group("Files");
}

void add_code_page_option(command_syntax command, image_options& options) {
    command
        .add_option(
            "--code-page", options.code_page,
            "code page of short names: ascii, 437, 850, 852, 866, 1252, 932, 936, 949, 950 [default: 437]")
        .value_name("PAGE")
        .check(validate_code_page)
        .group("Files");
}

void add_time_zone_option(command_syntax command, image_options& options) {
    command
        .add_option("--time-zone", options.time_zone,
                    "time zone of timestamps: host, utc, +HH:MM [default: host]")
        .value_name("ZONE")
        .check(validate_time_zone)
        .group("Files");
}

void add_image_options(command_syntax command, image_options& options) {
    const option_syntax overlay = add_overlay_option(command, options);
    command.add_flag("--journal", options.journal, "commit changes atomically, using IMAGE.journal")
        .group("Files")
        .excludes(overlay);
    add_code_page_option(command, options);
    add_time_zone_option(command, options);
}

}  // namespace sluice::cli
