// The wildcard matcher against a naive one: [MS-FSA] 2.1.4.4 as a set of reachable positions,
// element by element. The input is a pattern, a line end, and a name.

#include <string>
#include <string_view>
#include <vector>

#include "sluice/base/case_fold.hpp"
#include "sluice/base/ensure.hpp"
#include "sluice/smb/wire/fscc/wildcard.hpp"

namespace {

using namespace sluice;
using namespace sluice::smb::wire;

std::vector<char32_t> characters(std::string_view text) {
    std::vector<char32_t> points;
    for (std::size_t at = 0; at < text.size();) {
        const name_character next = character_at(text, at);
        points.push_back(next.point);
        at += next.length;
    }
    return points;
}

bool matches_naively(std::string_view pattern, std::string_view text, bool ignore_case) {
    if (pattern == "*.*") return !text.empty();
    const std::vector<char32_t> name = characters(text);
    const std::size_t end = name.size();
    std::size_t last_dot = end;
    for (std::size_t i = 0; i < end; ++i)
        if (name[i] == '.') last_dot = i;

    std::vector<bool> reachable(end + 1);
    reachable[0] = true;
    for (const char32_t element : characters(pattern)) {
        std::vector<bool> next(end + 1);
        for (std::size_t i = 0; i <= end; ++i) {
            if (!reachable[i]) continue;
            const bool dot = i < end and name[i] == '.';
            if (element == '*' or element == '<') {
                next[i] = true;
                // The same star reaches all following positions from here; a DOS star ends with the
                // last dot.
                for (std::size_t to = i; to < end; ++to) {
                    next[to + 1] = true;
                    if (element == '<' and to == last_dot) break;
                }
            } else if (element == '>') {
                next[i == end or dot ? i : i + 1] = true;
            } else if (element == '"') {
                if (i == end) next[i] = true;
                if (dot) next[i + 1] = true;
            } else if (i < end and (element == '?' or element == name[i] or
                                    (ignore_case and upcase(element) == upcase(name[i])))) {
                next[i + 1] = true;
            }
        }
        reachable = next;
    }
    return reachable[end];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t line_end = input.find('\n');
    if (line_end == std::string_view::npos) return 0;
    const std::string_view pattern = input.substr(0, line_end);
    const std::string_view name = input.substr(line_end + 1);
    if (size > 512 or name.size() > name_characters_max) return 0;  // the naive matcher is cubic
    ENSURE(wildcard_matches(pattern, name) == matches_naively(pattern, name, true));
    ENSURE(wildcard_matches(pattern, name, name_case::significant) == matches_naively(pattern, name, false));
    const std::string folded = fold(name);
    ENSURE(equal_ignoring_case(std::string_view(folded), name) and fold(folded) == folded);
    return 0;
}
