#include "sluice/vfs/path.hpp"

#include <array>
#include <cstdint>

#include "sluice/base/case_fold.hpp"
#include "sluice/vfs/limits.hpp"

namespace sluice::vfs {
namespace {

/// The ASCII characters that names may contain.
class plain_characters {
public:
    /// Allows all except those below `least`, and those listed.
    constexpr plain_characters(unsigned char least, std::string_view refused) {
        for (unsigned char each = least; each != 0x80; ++each)
            is_in_[each] = not refused.contains(static_cast<char>(each));
    }
    [[nodiscard]] constexpr bool contains(char byte) const noexcept {
        return is_in_[static_cast<unsigned char>(byte)];
    }

private:
    std::array<bool, 256> is_in_{};
};

constexpr plain_characters plain_in_names(0x20, "\"*/:<>?\\|");
constexpr plain_characters plain_in_stream_names(1, "/:\\");

// Checks all characters. Two surrogates that form a pair are rejected, because they have a proper
// UTF-8 encoding, and a name with two encodings could bypass a check.
result<void> check_text(std::string_view text, const plain_characters& plain) noexcept {
    const auto refuse = [&] { return failure(error::with_path(EILSEQ, "check name", text)); };
    std::size_t units = 0;
    bool after_high = false;
    for (std::size_t at = 0; at < text.size();) {
        if (plain.contains(text[at])) {
            after_high = false;
            for (; at != text.size() and plain.contains(text[at]); ++at)
                ++units;
            continue;
        }
        const name_character next = character_at(text, at);
        if (next.point < 0x80) return refuse();
        const bool is_low = next.point >= 0xdc00 and next.point <= 0xdfff;
        if (next.point > 0x10ffff or (after_high and is_low)) return refuse();
        after_high = next.point >= 0xd800 and next.point <= 0xdbff;
        units += next.point > 0xffff ? 2 : 1;
        at += next.length;
    }
    if (units > limits::name_units_max) return failure(error::with_path(ENAMETOOLONG, "check name", text));
    return {};
}

// Returns whether a name is "." or "..", also with mapped dots (host_name.hpp).
bool is_dot_or_two(std::string_view name) noexcept {
    constexpr std::string_view shown_dot = "\xef\x80\xa9";
    unsigned dots = 0;
    while (not name.empty() and dots <= 2) {
        const std::string_view dot = name.starts_with(shown_dot) ? shown_dot : ".";
        if (not name.starts_with(dot)) return false;
        name.remove_prefix(dot.size());
        ++dots;
    }
    return dots == 1 or dots == 2;
}

}  // namespace

result<void> check_name(std::string_view name) noexcept {
    if (name.empty() or is_dot_or_two(name)) return failure(error::with_path(EILSEQ, "check name", name));
    return check_text(name, plain_in_names);
}

result<void> check_stream_name(std::string_view name) noexcept {
    if (name.empty()) return failure(error::with_path(EILSEQ, "check name", name));
    return check_text(name, plain_in_stream_names);
}

result<void> check_path(std::string_view path) noexcept {
    if (path.empty()) return {};
    if (path.size() > limits::path_bytes_max)
        return failure(error::with_path(ENAMETOOLONG, "check path", path));
    for (std::string_view rest = path;;) {
        const std::size_t slash = rest.find('/');
        if (const auto valid = check_name(rest.substr(0, slash)); not valid) return valid;
        if (slash == rest.npos) return {};
        rest.remove_prefix(slash + 1);
    }
}

std::uint64_t stream_number(std::string_view name) {
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325ULL;
    for (const char each : fold(name))
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x0000'0100'0000'01b3ULL;
    return hash == 0 ? 1 : hash;  // 0 is the unnamed stream
}

std::string join_path(std::string_view directory, std::string_view name) {
    std::string path;
    path.reserve(directory.size() + 1 + name.size());
    path += directory;
    if (not directory.empty() and not name.empty()) path += '/';
    path += name;
    return path;
}

}  // namespace sluice::vfs
