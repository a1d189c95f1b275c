#include "sluice/fat/codec/short_name.hpp"

#include <algorithm>
#include <charconv>
#include <span>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/fat/codec/long_name.hpp"

namespace sluice::fat {
namespace {

constexpr unsigned char blank = ' ';
constexpr std::string_view long_only = "+,;=[]";
constexpr std::string_view never = "\"*/:<>?\\|";

// All systems apply the case bits to ASCII, and some to nothing else.
char lowered(char each) noexcept {
    return each >= 'A' and each <= 'Z' ? static_cast<char>(each + 0x20) : each;
}

bool may_be_short(char32_t point) noexcept {
    if (point <= 0x20 or point == 0x7f or point == '.') return false;
    if (point >= 0x80) return true;
    const char each = static_cast<char>(point);
    return not long_only.contains(each) and not never.contains(each);
}

std::span<const unsigned char> without_padding(std::span<const unsigned char> part) noexcept {
    while (not part.empty() and part.back() == blank)
        part = part.first(part.size() - 1);
    return part;
}

void append_part(std::string& text, std::span<const unsigned char> part, bool is_lower, code_page page) {
    while (not part.empty()) {
        const page_character next = decode(part, page);
        part = part.subspan(next.length);
        if (next.unit < 0x80) {
            const char each = static_cast<char>(next.unit);
            text.push_back(is_lower ? lowered(each) : each);
        } else {
            text += to_utf8({&next.unit, 1});
        }
    }
}

// Encodes one part of a name, if it fits, and its case bit.
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
        // A character that is not upper case on the page would decode to another one.
        if (upcase(next.point) != next.point or not may_be_short(next.point)) return false;
        const auto made = encode(next.point, page);
        if (not made or made->length > into.size() - length) return false;
        std::ranges::copy(std::span(made->bytes).first(made->length), into.begin() + length);
        length += made->length;
    }
    if (has_upper and has_lower) return false;
    if (has_lower) name.case_bits |= bit;
    return true;
}

// Copies the characters of `part` that a short name may contain; records the length and the second
// bytes.
struct basis_part {
    std::size_t length = 0;
    std::uint8_t second_bytes = 0;
};
basis_part put_basis(std::span<unsigned char> into, std::string_view part, code_page page) {
    ENSURE(into.size() <= 8, "each byte has a bit");
    basis_part done;
    for (std::size_t at = 0; at < part.size();) {
        const name_character next = character_at(part, at);
        at += next.length;
        if (next.point == ' ' or next.point == '.') continue;
        const char32_t upper = upcase(next.point);
        const auto encoded = may_be_short(upper) ? encode(upper, page) : std::nullopt;
        const page_bytes made = encoded.value_or(page_bytes{.bytes = {'_'}});
        if (made.length > into.size() - done.length) break;
        std::ranges::copy(std::span(made.bytes).first(made.length), into.begin() + done.length);
        if (made.length == 2) done.second_bytes |= static_cast<std::uint8_t>(1U << (done.length + 1));
        done.length += made.length;
    }
    return done;
}

}  // namespace

std::string text_of(const short_name_bytes& bytes, std::uint8_t case_bits, code_page page) {
    short_name_bytes copy = bytes;
    if (copy[0] == e5_substitute) copy[0] = free_mark;
    std::string text;
    append_part(text, without_padding(std::span(copy).first(8)), (case_bits & lower_base) != 0, page);
    const auto extension = without_padding(std::span(copy).subspan(8));
    if (not extension.empty()) text.push_back('.');
    append_part(text, extension, (case_bits & lower_extension) != 0, page);
    return text;
}

std::string text_of_label(const short_name_bytes& bytes, code_page page) {
    std::string text;
    append_part(text, without_padding(bytes), false, page);
    return text;
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
    if (made.bytes[0] == free_mark) made.bytes[0] = e5_substitute;
    return made;
}

short_name_basis basis_of(std::string_view name, code_page page) {
    while (name.starts_with('.') or name.starts_with(' '))
        name.remove_prefix(1);
    const std::size_t dot = name.rfind('.');
    short_name_basis basis;
    basis.base.fill(blank);
    basis.extension.fill(blank);
    const basis_part base = put_basis(basis.base, name.substr(0, dot), page);
    basis.base_length = base.length;
    basis.second_bytes = base.second_bytes;
    if (dot != name.npos) (void)put_basis(basis.extension, name.substr(dot + 1), page);
    if (basis.base_length == 0) {
        basis.base[0] = '_';
        basis.base_length = 1;
    }
    return basis;
}

short_name_bytes numbered(const short_name_basis& basis, std::uint32_t number) noexcept {
    ENSURE(number >= 1 and number <= short_name_number_max);
    ENSURE(basis.base_length != 0 and basis.base_length <= basis.base.size(), "a basis has a base");
    std::array<char, 8> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    const std::string_view tail(digits.data(), written.ptr);
    short_name_bytes made;
    made.fill(blank);
    std::size_t kept = std::min(basis.base_length, 7 - tail.size());
    if (kept < basis.base_length and (basis.second_bytes >> kept & 1) != 0) --kept;
    std::ranges::copy(std::span(basis.base).first(kept), made.begin());
    made[kept] = '~';
    std::ranges::copy(tail, made.begin() + static_cast<std::ptrdiff_t>(kept) + 1);
    std::ranges::copy(basis.extension, made.begin() + 8);
    if (made[0] == free_mark) made[0] = e5_substitute;
    return made;
}

}  // namespace sluice::fat
