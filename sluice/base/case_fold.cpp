#include "sluice/base/case_fold.hpp"

#include <algorithm>
#include <cstring>

#include "sluice/base/case_table.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice {
namespace {

constexpr char32_t invalid_byte = 0x110000;  // the first value that is not a code point

bool is_high_surrogate(char32_t unit) noexcept {
    return unit >= 0xD800 and unit <= 0xDBFF;
}
bool is_low_surrogate(char32_t unit) noexcept {
    return unit >= 0xDC00 and unit <= 0xDFFF;
}

void append_utf8(std::string& text, char32_t point) {
    const auto put = [&](char32_t byte) { text.push_back(static_cast<char>(byte)); };
    const auto put_trail = [&](unsigned shift) { put(0x80 | ((point >> shift) & 0x3F)); };
    if (point >= invalid_byte) {
        put(point - invalid_byte);
    } else if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | (point >> 6));
        put_trail(0);
    } else if (point < 0x10000) {
        put(0xE0 | (point >> 12));
        put_trail(6);
        put_trail(0);
    } else {
        put(0xF0 | (point >> 18));
        put_trail(12);
        put_trail(6);
        put_trail(0);
    }
}

constexpr std::uint64_t in_each_byte = 0x0101'0101'0101'0101;

// Returns eight bytes of text, or the remaining ones and zeros.
std::uint64_t word_of(std::string_view text) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), std::min(text.size(), sizeof word));
    return word;
}

// Upcases eight ASCII bytes: no sum carries into the next byte.
std::uint64_t upcase_ascii(std::uint64_t word) noexcept {
    const std::uint64_t from_a = word + in_each_byte * (0x80 - 'a');
    const std::uint64_t behind_z = word + in_each_byte * (0x80 - ('z' + 1));
    return word - ((from_a & ~behind_z & in_each_byte * 0x80) >> 2);
}

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) noexcept {
    hash = (hash ^ word) * 0x9E37'79B9'7F4A'7C15;
    return hash ^ hash >> 32;
}

// Returns the initial value of a hash: no ASCII word cancels it, as one could cancel the length
// itself.
std::uint64_t begun(std::size_t length) noexcept {
    return ~std::uint64_t{length};
}

std::uint32_t hash_of_folded(std::string_view folded) noexcept {
    std::uint64_t hash = begun(folded.size());
    for (; not folded.empty(); folded.remove_prefix(std::min(folded.size(), sizeof hash)))
        hash = mixed(hash, word_of(folded));
    return static_cast<std::uint32_t>(hash);
}

template <class View>
bool equal_by_character(View a, View b) noexcept {
    if (a == b) return true;
    std::size_t at_a = 0;
    std::size_t at_b = 0;
    while (at_a < a.size() and at_b < b.size()) {
        const auto unit_a = static_cast<char32_t>(a[at_a]);
        const auto unit_b = static_cast<char32_t>(b[at_b]);
        if ((unit_a | unit_b) < 0x80) {
            if (upcase(unit_a) != upcase(unit_b)) return false;
            ++at_a;
            ++at_b;
            continue;
        }
        const name_character in_a = character_at(a, at_a);
        const name_character in_b = character_at(b, at_b);
        if (in_a.point != in_b.point and upcase(in_a.point) != upcase(in_b.point)) return false;
        at_a += in_a.length;
        at_b += in_b.length;
    }
    return at_a == a.size() and at_b == b.size();
}

}  // namespace

char16_t upcase(char16_t unit) noexcept {
    if (unit < 0x80) return unit >= u'a' and unit <= u'z' ? static_cast<char16_t>(unit - 0x20) : unit;
    const auto run = std::ranges::lower_bound(upcase_runs, unit, {}, &upcase_run::last);
    if (run == upcase_runs.end() or unit < run->first or (unit - run->first) % run->step != 0) return unit;
    return static_cast<char16_t>(unit + run->delta);
}

char32_t upcase(char32_t point) noexcept {
    return point > 0xFFFF ? point : upcase(static_cast<char16_t>(point));
}

name_character character_at(std::string_view name, std::size_t position) noexcept {
    ENSURE(position < name.size());
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(name[position + i]); };
    const char32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    const name_character stray{invalid_byte + lead, 1};
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 or lead > 0xF4 or length > name.size() - position) return stray;
    char32_t point = lead & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return stray;
        point = point << 6 | (byte(i) & 0x3F);
    }
    const char32_t shortest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < shortest[length] or point > 0x10FFFF) return stray;
    return {point, length};
}

name_character character_at(std::u16string_view name, std::size_t position) noexcept {
    ENSURE(position < name.size());
    const char32_t unit = name[position];
    if (!is_high_surrogate(unit) or name.size() - position < 2) return {unit, 1};
    const char32_t partner = name[position + 1];
    if (!is_low_surrogate(partner)) return {unit, 1};
    return {0x10000 + ((unit - 0xD800) << 10 | (partner - 0xDC00)), 2};
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
    return equal_by_character(a, b);
}

bool equal_ignoring_case(std::u16string_view a, std::u16string_view b) noexcept {
    return equal_by_character(a, b);
}

void fold_into(std::string& folded, std::string_view utf8) {
    folded.clear();
    folded.reserve(utf8.size());
    for (std::size_t at = 0; at < utf8.size();) {
        if (const auto byte = static_cast<unsigned char>(utf8[at]); byte < 0x80) {
            folded.push_back(static_cast<char>(upcase(char16_t{byte})));
            ++at;
            continue;
        }
        const name_character next = character_at(utf8, at);
        append_utf8(folded, upcase(next.point));
        at += next.length;
    }
}

std::uint32_t hash_ignoring_case(std::string_view utf8) {
    std::uint64_t hash = begun(utf8.size());
    for (std::string_view left = utf8; not left.empty();
         left.remove_prefix(std::min(left.size(), sizeof hash))) {
        const std::uint64_t word = word_of(left);
        if ((word & in_each_byte * 0x80) != 0) return hash_of_folded(fold(utf8));
        hash = mixed(hash, upcase_ascii(word));
    }
    return static_cast<std::uint32_t>(hash);
}

std::string fold(std::string_view utf8) {
    std::string folded;
    fold_into(folded, utf8);
    return folded;
}

}  // namespace sluice
