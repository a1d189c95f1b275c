#include "sluice/io/path/glob.hpp"

#include <cstddef>

#include "sluice/base/ensure.hpp"

namespace sluice::io {
namespace {

constexpr std::size_t none = std::string_view::npos;

// What one element of a pattern, other than `*`, made of the front of a name.
struct step {
    std::size_t pattern_bytes = 0;  // length of the element
    std::size_t name_bytes = 0;     // how much of the name it took
    bool fits = false;
};

std::size_t code_point_bytes(std::string_view name) noexcept {
    std::size_t bytes = 1;
    // Continuation bytes are 10xxxxxx; a name that is not UTF-8 is taken in similar pieces, which does no
    // harm.
    if ((static_cast<unsigned char>(name[0]) & 0xc0) != 0xc0) return bytes;
    while (bytes < name.size() and (static_cast<unsigned char>(name[bytes]) & 0xc0) == 0x80)
        ++bytes;
    return bytes;
}

// `pattern` begins with `[`. A `]` directly after `[` or `[!` belongs to the set.
step match_set(std::string_view pattern, std::string_view name) noexcept {
    const bool negated = pattern.size() > 1 and (pattern[1] == '!' or pattern[1] == '^');
    const std::size_t first = negated ? 2 : 1;
    const std::size_t end = pattern.find(']', first + 1);
    if (end == none) return {.pattern_bytes = 1, .name_bytes = 1, .fits = name[0] == '['};
    const auto byte = static_cast<unsigned char>(name[0]);
    bool within = false;
    for (std::size_t i = first; i < end; ++i) {
        const auto low = static_cast<unsigned char>(pattern[i]);
        if (i + 2 < end and pattern[i + 1] == '-') {
            within = within or (low <= byte and byte <= static_cast<unsigned char>(pattern[i + 2]));
            i += 2;
        } else {
            within = within or low == byte;
        }
    }
    return {.pattern_bytes = end + 1, .name_bytes = 1, .fits = within != negated};
}

step match_one(std::string_view pattern, std::string_view name) noexcept {
    ENSURE(not pattern.empty() and not name.empty(), "an element takes a part of a name");
    switch (pattern[0]) {
        case '?':
            return {.pattern_bytes = 1, .name_bytes = code_point_bytes(name), .fits = true};
        case '[':
            return match_set(pattern, name);
        case '\\':
            if (pattern.size() > 1)
                return {.pattern_bytes = 2, .name_bytes = 1, .fits = pattern[1] == name[0]};
            [[fallthrough]];
        default:
            return {.pattern_bytes = 1, .name_bytes = 1, .fits = pattern[0] == name[0]};
    }
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view name) noexcept {
    std::size_t p = 0;
    std::size_t n = 0;
    // Only the last `*` ever needs to take more: whatever an earlier one could gain by it, this one can too.
    std::size_t star = none;
    std::size_t star_took_to = 0;
    while (n < name.size()) {
        if (p < pattern.size() and pattern[p] == '*') {
            star = p++;
            star_took_to = n;
            continue;
        }
        const step one = p < pattern.size() ? match_one(pattern.substr(p), name.substr(n)) : step{};
        if (one.fits) {
            p += one.pattern_bytes;
            n += one.name_bytes;
        } else if (star != none) {
            p = star + 1;
            n = ++star_took_to;
        } else {
            return false;
        }
        ENSURE(p <= pattern.size() and n <= name.size(), "an element takes more than there is");
    }
    while (p < pattern.size() and pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

}  // namespace sluice::io
