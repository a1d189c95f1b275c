#include "sluice/vfs/short_name.hpp"

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"

namespace sluice::vfs {
namespace {

constexpr std::size_t base_max = 8;
constexpr std::size_t extension_max = 3;
constexpr std::size_t kept_max = 6;        // before "~1"
constexpr std::size_t kept_with_hash = 2;  // before the hash
constexpr std::size_t hash_digits = 4;
constexpr std::uint32_t attempts_per_hash = 9;

char upper(char c) noexcept {
    return c >= 'a' and c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool is_allowed(char c) noexcept {
    const char shown = upper(c);
    return (shown >= 'A' and shown <= 'Z') or (shown >= '0' and shown <= '9') or
           std::string_view("_-~!#$%&'()@^`{}").contains(shown);
}

bool is_hash_digit(char c) noexcept {
    return (c >= '0' and c <= '9') or (upper(c) >= 'A' and upper(c) <= 'F');
}

// A text of at most eight characters.
class piece {
public:
    void add(char c, std::size_t size_max = base_max) noexcept {
        if (size_ < size_max) text_[size_++] = c;
    }
    void add(std::string_view text) noexcept {
        for (const char each : text)
            add(each);
    }
    [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }

private:
    std::array<char, base_max> text_{};
    std::size_t size_ = 0;
};

// The characters of a part of a name that a short name can have; others become '_', spaces and dots
// go.
piece letters_of(std::string_view part, std::size_t size_max) noexcept {
    piece kept;
    for (std::size_t at = 0; at < part.size();) {
        const name_character next = character_at(part, at);
        at += next.length;
        const char c = next.point < 0x80 ? static_cast<char>(next.point) : '_';
        if (c == ' ' or c == '.') continue;
        kept.add(is_allowed(c) ? upper(c) : '_', size_max);
    }
    return kept;
}

struct name_parts {
    std::string_view base;
    std::string_view extension;
};

// Leading dots begin no extension.
name_parts parts_of(std::string_view name) noexcept {
    const std::size_t dot = name.rfind('.');
    const std::size_t first = name.find_first_not_of('.');
    if (dot == name.npos or first == name.npos or dot < first) return {.base = name, .extension = {}};
    return {.base = name.substr(0, dot), .extension = name.substr(dot + 1)};
}

// FNV-1a, folded to 16 bits.
std::uint16_t hash_of(std::string_view name, std::uint32_t salt) noexcept {
    std::uint32_t hash = 0x811c'9dc5U ^ salt;
    for (const char each : name)
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x0100'0193U;
    return static_cast<std::uint16_t>(hash ^ (hash >> 16));
}

}  // namespace

bool is_short_name(std::string_view name) noexcept {
    const std::size_t dot = name.find('.');
    const std::string_view base = name.substr(0, dot);
    const std::string_view extension = dot == name.npos ? std::string_view{} : name.substr(dot + 1);
    return not base.empty() and base.size() <= base_max and extension.size() <= extension_max and
           not(dot != name.npos and extension.empty()) and std::ranges::all_of(base, is_allowed) and
           std::ranges::all_of(extension, is_allowed);
}

short_name::short_name(std::string_view text) noexcept : size_(static_cast<std::uint8_t>(text.size())) {
    ENSURE(text.empty() or is_short_name(text), "a short name has the form of one");
    std::ranges::transform(text, text_.begin(), upper);
}

short_name short_name_for(std::string_view name, std::uint32_t attempt) noexcept {
    ENSURE(attempt < short_name_attempts_max, "the attempts at a short name are bounded");
    const name_parts parts = parts_of(name);
    const bool is_plain = attempt < plain_short_name_attempts;
    piece base = letters_of(parts.base, is_plain ? kept_max : kept_with_hash);
    if (is_plain and base.view().empty()) base.add('_');
    std::uint32_t number = attempt + 1;
    if (not is_plain) {
        const std::uint32_t later = attempt - plain_short_name_attempts;
        number = later % attempts_per_hash + 1;
        const std::uint16_t hash = hash_of(name, later / attempts_per_hash);
        for (int shift = 12; shift >= 0; shift -= 4)
            base.add("0123456789ABCDEF"[(hash >> shift) & 0xf]);
    }
    base.add('~');
    base.add(static_cast<char>('0' + number));
    std::array<char, short_name::characters_max> text{};
    auto end = std::ranges::copy(base.view(), text.begin()).out;
    const piece extension = letters_of(parts.extension, extension_max);
    if (not extension.view().empty()) {
        *end++ = '.';
        end = std::ranges::copy(extension.view(), end).out;
    }
    return short_name(std::string_view(text.data(), static_cast<std::size_t>(end - text.begin())));
}

bool may_be_generated(std::string_view text) noexcept {
    if (not is_short_name(text)) return false;
    const std::string_view base = text.substr(0, text.find('.'));
    if (base.size() < 3 or base[base.size() - 2] != '~') return false;
    const std::string_view kept = base.substr(0, base.size() - 2);
    const auto number = static_cast<std::uint32_t>(base.back() - '0');
    if (number >= 1 and number <= plain_short_name_attempts) return true;
    return number >= 1 and number <= attempts_per_hash and kept.size() >= hash_digits and
           std::ranges::all_of(kept.substr(kept.size() - hash_digits), is_hash_digit);
}

}  // namespace sluice::vfs
