#include "sluice/fat/short_name.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/fat/long_name.hpp"

namespace sluice::fat {
namespace {

constexpr unsigned char blank = ' ';
constexpr std::string_view long_only = "+,;=[]";
constexpr std::string_view never = "\"*/:<>?\\|";

// The case bits mean ASCII to every system, and to some no more than that.
char16_t lowered(char16_t unit) noexcept {
    return unit >= u'A' and unit <= u'Z' ? static_cast<char16_t>(unit + 0x20) : unit;
}

bool may_be_short(char32_t point) noexcept {
    if (point <= 0x20 or point == 0x7f or point == '.') return false;
    if (point >= 0x80) return true;
    const char each = static_cast<char>(point);
    return not long_only.contains(each) and not never.contains(each);
}

void append_part(std::u16string& text, std::span<const unsigned char> part, bool is_lower, code_page page) {
    while (not part.empty() and part.back() == blank)
        part = part.first(part.size() - 1);
    for (const unsigned char each : part) {
        const char16_t unit = decode(each, page);
        text.push_back(is_lower ? lowered(unit) : unit);
    }
}

// One part of a name that fits, and its case bit.
bool put_part(std::span<unsigned char> into, std::string_view part, std::uint8_t bit, short_name& name,
              code_page page) {
    bool has_upper = false;
    bool has_lower = false;
    std::size_t length = 0;
    for (std::size_t at = 0; at < part.size();) {
        name_character next = character_at(part, at);
        at += next.length;
        has_upper = has_upper or (next.point >= 'A' and next.point <= 'Z');
        if (next.point >= 'a' and next.point <= 'z') {
            has_lower = true;
            next.point -= 0x20;
        }
        // In another case than the page's upper one it would come back as something else.
        if (upcase(next.point) != next.point or not may_be_short(next.point)) return false;
        const auto byte = encode(next.point, page);
        if (not byte or length == into.size()) return false;
        into[length++] = *byte;
    }
    if (has_upper and has_lower) return false;
    if (has_lower) name.case_bits |= bit;
    return true;
}

// Fills `into` from what of `part` a short name may hold; how much that was.
std::size_t put_basis(std::span<unsigned char> into, std::string_view part, code_page page) {
    std::size_t length = 0;
    for (std::size_t at = 0; at < part.size() and length < into.size();) {
        const name_character next = character_at(part, at);
        at += next.length;
        if (next.point == ' ' or next.point == '.') continue;
        const char32_t upper = upcase(next.point);
        const auto byte = may_be_short(upper) ? encode(upper, page) : std::nullopt;
        into[length++] = byte.value_or('_');
    }
    return length;
}

}  // namespace

std::string text_of(const short_name_bytes& bytes, std::uint8_t case_bits, code_page page) {
    short_name_bytes copy = bytes;
    if (copy[0] == stands_for_e5) copy[0] = free_mark;
    std::u16string text;
    append_part(text, std::span(copy).first(8), (case_bits & lower_base) != 0, page);
    std::u16string extension;
    append_part(extension, std::span(copy).subspan(8), (case_bits & lower_extension) != 0, page);
    if (not extension.empty()) text += u'.' + extension;
    return to_utf8(text);
}

std::optional<short_name> exactly(std::string_view name, code_page page) {
    short_name made;
    made.bytes.fill(blank);
    const std::size_t dot = name.find('.');
    const std::string_view base = name.substr(0, dot);
    const std::string_view extension = dot == name.npos ? std::string_view() : name.substr(dot + 1);
    if (base.empty() or (dot != name.npos and extension.empty())) return std::nullopt;
    const std::span<unsigned char> bytes(made.bytes);
    if (not put_part(bytes.first(8), base, lower_base, made, page)) return std::nullopt;
    if (not put_part(bytes.subspan(8), extension, lower_extension, made, page)) return std::nullopt;
    if (made.bytes[0] == free_mark) made.bytes[0] = stands_for_e5;
    return made;
}

short_name_basis basis_of(std::string_view name, code_page page) {
    while (name.starts_with('.') or name.starts_with(' '))
        name.remove_prefix(1);
    const std::size_t dot = name.rfind('.');
    short_name_basis basis;
    basis.base.fill(blank);
    basis.extension.fill(blank);
    basis.base_length = put_basis(basis.base, name.substr(0, dot), page);
    if (dot != name.npos) (void)put_basis(basis.extension, name.substr(dot + 1), page);
    if (basis.base_length == 0) {
        basis.base[0] = '_';
        basis.base_length = 1;
    }
    return basis;
}

short_name_bytes numbered(const short_name_basis& basis, std::uint32_t number) noexcept {
    ENSURE(number >= 1 and number <= short_name_number_max);
    std::array<char, 8> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    const std::string_view tail(digits.data(), written.ptr);
    short_name_bytes made;
    made.fill(blank);
    const std::size_t kept = std::min(basis.base_length, 7 - tail.size());
    std::ranges::copy(std::span(basis.base).first(kept), made.begin());
    made[kept] = '~';
    std::ranges::copy(tail, made.begin() + static_cast<std::ptrdiff_t>(kept) + 1);
    std::ranges::copy(basis.extension, made.begin() + 8);
    if (made[0] == free_mark) made[0] = stands_for_e5;
    return made;
}

}  // namespace sluice::fat
