#include "sluice/vfs/snapshot/snapshot_pattern.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "sluice/base/ensure.hpp"
#include "sluice/base/padded_number.hpp"

namespace sluice::vfs {
namespace {

constexpr std::string_view conversions = "YmdHMSs";
constexpr std::int64_t year_min = 1970;
constexpr std::int64_t year_max = 9999;
constexpr snapshot_time first_time{};
constexpr snapshot_time last_time =
    std::chrono::sys_days(std::chrono::year(year_max) / 12 / 31) + std::chrono::seconds(86'399);
constexpr std::size_t epoch_digits_max = 12;
constexpr std::size_t name_bytes_max = 255;

[[nodiscard]] bool is_digit(char c) noexcept {
    return c >= '0' and c <= '9';
}

[[nodiscard]] std::size_t digits_of(char conversion) noexcept {
    return conversion == 'Y' ? 4 : 2;
}

// Removes a number from the front of the text. Returns std::nullopt if there is none of that
// length; with 0, of any length.
[[nodiscard]] std::optional<std::int64_t> take_number(std::string_view& from, std::size_t digits) noexcept {
    const auto end = std::ranges::find_if_not(from, is_digit);
    auto length = static_cast<std::size_t>(end - from.begin());
    if (digits != 0 and length < digits) return std::nullopt;
    if (digits != 0) length = digits;
    if (length == 0 or length > epoch_digits_max) return std::nullopt;
    std::int64_t number = 0;
    const auto parsed = std::from_chars(from.data(), from.data() + length, number);
    ENSURE(parsed.ec == std::errc{}, "up to twelve digits are a number");
    from.remove_prefix(length);
    return number;
}

[[nodiscard]] bool has_conversion(std::string_view component) noexcept {
    for (std::size_t at = component.find('%'); at != component.npos; at = component.find('%', at + 2))
        if (at + 1 == component.size() or component[at + 1] != '%') return true;
    return false;
}

[[nodiscard]] std::string without_escapes(std::string_view component) {
    std::string text;
    for (std::size_t at = 0; at != component.size(); ++at) {
        text += component[at];
        if (component[at] == '%') ++at;  // the second of a pair
    }
    return text;
}

// The components before the name, the name, and those after it.
struct divided_path {
    std::string directory{};
    std::string_view name{};
    std::string subpath{};
    std::string problem{};
};

[[nodiscard]] divided_path divide(std::string_view text) {
    divided_path parts;
    if (text.starts_with('/')) parts.directory = "/";
    while (not text.empty()) {
        const std::size_t slash = text.find('/');
        const std::string_view component = text.substr(0, slash);
        text = slash == text.npos ? std::string_view() : text.substr(slash + 1);
        if (component.empty() or component == ".") continue;
        if (has_conversion(component)) {
            if (not parts.name.empty()) parts.problem = "only one component may contain conversions";
            parts.name = component;
            continue;
        }
        std::string& to = parts.name.empty() ? parts.directory : parts.subpath;
        if (component == "..") parts.problem = "'..' is not allowed; use an absolute path";
        if (not to.empty() and not to.ends_with('/')) to += '/';
        to += without_escapes(component);
    }
    if (parts.name.empty()) parts.problem = "a component must contain the time, as in %Y-%m-%d_%H%M";
    return parts;
}

}  // namespace

std::expected<snapshot_pattern, std::string> snapshot_pattern::parse(std::string_view text) {
    if (text.find('\0') != text.npos) return std::unexpected("a path has no zero byte");
    divided_path parts = divide(text);
    if (not parts.problem.empty()) return std::unexpected(std::move(parts.problem));
    snapshot_pattern parsed;
    parsed.directory_ = std::move(parts.directory);
    parsed.subpath_ = std::move(parts.subpath);
    if (std::string problem = parsed.parse_name(parts.name); not problem.empty())
        return std::unexpected(std::move(problem));
    if (std::string problem = parsed.check(); not problem.empty()) return std::unexpected(std::move(problem));
    ENSURE(not parsed.fields_.empty(), "a pattern has a conversion");
    return parsed;
}

// Returns the rule that the name violates.
std::string snapshot_pattern::parse_name(std::string_view name) {
    std::string literal;
    for (std::size_t at = 0; at != name.size(); ++at) {
        if (name[at] != '%') {
            literal += name[at];
            continue;
        }
        const char conversion = at + 1 == name.size() ? '\0' : name[at + 1];
        if (conversion == '\0') return "a '%' needs a conversion after it; write %% for a percent sign";
        ++at;
        if (conversion == '%') {
            literal += '%';
            continue;
        }
        if (not conversions.contains(conversion))
            return std::string("unknown conversion '%") + conversion +
                   "'; use %Y, %m, %d, %H, %M, %S, %s, and %%";
        if (has(conversion)) return std::string("'%") + conversion + "' may occur only once";
        fields_.push_back({.before = std::exchange(literal, {}), .conversion = conversion});
    }
    after_ = std::move(literal);
    return {};
}

bool snapshot_pattern::has(char conversion) const noexcept {
    return std::ranges::find(fields_, conversion, &field::conversion) != fields_.end();
}

std::string snapshot_pattern::check() const {
    if (has('s')) {
        if (fields_.size() != 1) return "%s must be the only conversion";
        if (not after_.empty() and is_digit(after_.front())) return "no digit may follow %s";
    } else {
        if (not(has('Y') and has('m') and has('d')))
            return "the date must be complete: %Y, %m, and %d, or %s";
        if (has('M') and not has('H')) return "%M needs %H";
        if (has('S') and not has('M')) return "%S needs %M";
    }
    if (text_of(last_time).size() > name_bytes_max) return "a name may have at most 255 bytes";
    return {};
}

std::string snapshot_pattern::text_of(snapshot_time when) const {
    ENSURE(when >= first_time and when <= last_time, "the time can be expressed");
    const auto day = std::chrono::floor<std::chrono::days>(when);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(when - day);
    std::string text;
    for (const field& each : fields_) {
        text += each.before;
        std::int64_t number = 0;
        switch (each.conversion) {
            case 'Y':
                number = static_cast<int>(date.year());
                break;
            case 'm':
                number = static_cast<unsigned>(date.month());
                break;
            case 'd':
                number = static_cast<unsigned>(date.day());
                break;
            case 'H':
                number = time.hours().count();
                break;
            case 'M':
                number = time.minutes().count();
                break;
            case 'S':
                number = time.seconds().count();
                break;
            default:
                number = when.time_since_epoch().count();
                break;
        }
        ENSURE(number >= 0, "the parts of a time since 1970 are not negative");
        append_padded(text, static_cast<std::uint64_t>(number),
                      each.conversion == 's' ? 1 : digits_of(each.conversion));
    }
    return text + after_;
}

std::optional<snapshot_time> snapshot_pattern::parse_time(std::string_view name) const {
    std::array<std::int64_t, conversions.size()> numbers{year_min, 1, 1, 0, 0, 0, 0};
    for (const field& each : fields_) {
        if (not name.starts_with(each.before)) return std::nullopt;
        name.remove_prefix(each.before.size());
        const auto number = take_number(name, each.conversion == 's' ? 0 : digits_of(each.conversion));
        if (not number) return std::nullopt;
        numbers.at(conversions.find(each.conversion)) = *number;
    }
    if (name != after_) return std::nullopt;
    const auto [year, month, day, hour, minute, second, epoch] = numbers;
    if (has('s')) return snapshot_time(std::chrono::seconds(epoch));
    const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(year)),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day)));
    if (not date.ok() or year < year_min or hour > 23 or minute > 59 or second > 59) return std::nullopt;
    return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
           std::chrono::seconds(second);
}

std::optional<snapshot_time> snapshot_pattern::time_of(std::string_view name) const {
    const auto found = parse_time(name);
    if (not found or *found > last_time) return std::nullopt;
    // Not with leading zeros: open() would look for another name.
    return text_of(*found) == name ? found : std::nullopt;
}

std::optional<std::string> snapshot_pattern::name_of(snapshot_time when) const {
    if (when < first_time or when > last_time or round(when) != when) return std::nullopt;
    std::string name = text_of(when);
    ENSURE(parse_time(name) == when, "a name has the time that it was made for");
    return name;
}

snapshot_time snapshot_pattern::round(snapshot_time when) const noexcept {
    if (has('s') or has('S')) return when;
    if (has('M')) return std::chrono::floor<std::chrono::minutes>(when);
    if (has('H')) return std::chrono::floor<std::chrono::hours>(when);
    return std::chrono::floor<std::chrono::days>(when);
}

}  // namespace sluice::vfs
