#include "sluice/smb/wire/fsctl/fsctl_snapshots.hpp"

#include <algorithm>

#include "sluice/base/endian.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/base/padded_number.hpp"

namespace sluice::smb::wire {
namespace {

constexpr std::string_view token_prefix = "@GMT-";
// The form of a token; each 0 is a digit.
constexpr std::string_view token_form = "@GMT-0000.00.00-00.00.00";
static_assert(token_form.size() == gmt_token_units);

constexpr std::size_t head_bytes = 12;
constexpr std::size_t token_bytes = 2 * (gmt_token_units + 1);  // with its zero
constexpr std::size_t end_bytes = 2;                            // the zero after the last token

[[nodiscard]] bool has_form(std::string_view text) noexcept {
    if (text.size() != token_form.size()) return false;
    for (std::size_t at = 0; at != text.size(); ++at) {
        const bool wants_digit = token_form[at] == '0';
        const bool is_digit = text[at] >= '0' and text[at] <= '9';
        if (wants_digit ? not is_digit : text[at] != token_form[at]) return false;
    }
    return true;
}

[[nodiscard]] unsigned number_at(std::string_view text, std::size_t at, std::size_t digits) noexcept {
    unsigned number = 0;
    for (const char digit : text.substr(at, digits))
        number = number * 10 + static_cast<unsigned>(digit - '0');
    return number;
}

void put_token(byte_writer& writer, std::chrono::sys_seconds when) {
    for (const char each : gmt_token_of(when))
        writer.put(le16(static_cast<std::uint8_t>(each)));
    writer.put(le16(0));
}

}  // namespace

std::string gmt_token_of(std::chrono::sys_seconds when) {
    const auto day = std::chrono::floor<std::chrono::days>(when);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(when - day);
    const int year = static_cast<int>(date.year());
    ENSURE(year >= 1601 and year <= 9999, "a token has a year of four digits");
    std::string text(token_prefix);
    append_padded(text, static_cast<unsigned>(year), 4);
    for (const unsigned part : {static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day())})
        append_padded(text += '.', part, 2);
    append_padded(text += '-', static_cast<unsigned>(time.hours().count()), 2);
    append_padded(text += '.', static_cast<unsigned>(time.minutes().count()), 2);
    append_padded(text += '.', static_cast<unsigned>(time.seconds().count()), 2);
    ENSURE(has_form(text), "a token has the form of one");
    return text;
}

std::optional<std::chrono::sys_seconds> parse_gmt_token(std::string_view text) noexcept {
    if (not has_form(text)) return std::nullopt;
    const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(number_at(text, 5, 4))),
                                           std::chrono::month(number_at(text, 10, 2)),
                                           std::chrono::day(number_at(text, 13, 2)));
    const unsigned hour = number_at(text, 16, 2);
    const unsigned minute = number_at(text, 19, 2);
    const unsigned second = number_at(text, 22, 2);
    if (not date.ok() or date.year() < std::chrono::year(1601) or hour > 23 or minute > 59 or second > 59)
        return std::nullopt;
    return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
           std::chrono::seconds(second);
}

std::size_t snapshot_array_bytes(std::size_t times) noexcept {
    return std::max(snapshot_array_bytes_min, head_bytes + times * token_bytes + end_bytes);
}

void encode_snapshot_array(byte_writer& writer, std::span<const std::chrono::sys_seconds> times,
                           std::size_t bytes_max) {
    ENSURE(bytes_max >= snapshot_array_bytes_min, "the head of the reply has room");
    const bool fits = snapshot_array_bytes(times.size()) <= bytes_max;
    const auto count = static_cast<std::uint32_t>(times.size());
    const auto list_bytes = static_cast<std::uint32_t>(times.size() * token_bytes + end_bytes);
    writer.put(std::array{le32(count), le32(fits ? count : 0), le32(list_bytes)});
    if (not fits or times.empty()) return writer.put(le32(0));
    for (const std::chrono::sys_seconds each : times)
        put_token(writer, each);
    writer.put(le16(0));
}

}  // namespace sluice::smb::wire
