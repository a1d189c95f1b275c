#include "sluice/vfs/host/host_name.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/vfs/path.hpp"

namespace sluice::vfs {
namespace {

constexpr char32_t private_start = 0xf000;
constexpr char32_t first_listed = 0xf020;
constexpr std::string_view listed = "\"*:<>?\\|";  // U+F020 and following
constexpr char32_t last_space = 0xf028;
constexpr char32_t last_dot = 0xf029;
constexpr char32_t replacement = 0xfffd;

// Only for the private range and U+FFFD, which have three bytes.
void append_three_bytes(std::string& text, char32_t point) {
    text.push_back(static_cast<char>(0xe0 | (point >> 12)));
    text.push_back(static_cast<char>(0x80 | ((point >> 6) & 0x3f)));
    text.push_back(static_cast<char>(0x80 | (point & 0x3f)));
}

// Returns the shown form of a character; the character itself if it is allowed.
char32_t shown_character(char32_t point, bool is_last) noexcept {
    if (point > 0x10ffff) return replacement;
    if (point >= 0x80) return point;
    if (point < 0x20) return private_start + point;
    if (is_last and point == ' ') return last_space;
    if (is_last and point == '.') return last_dot;
    const std::size_t index = listed.find(static_cast<char>(point));
    return index == listed.npos ? point : first_listed + static_cast<char32_t>(index);
}

// Returns whether all characters are plain ASCII, which nearly all names are, in one pass without
// decoding.
bool is_shown_as_it_is(std::string_view name) noexcept {
    for (const char each : name) {
        const auto byte = static_cast<unsigned char>(each);
        if (byte < 0x20 or byte >= 0x80 or listed.contains(each)) return false;
    }
    return not name.ends_with('.') and not name.ends_with(' ');
}

}  // namespace

char32_t host_character(char32_t shown) noexcept {
    if (shown <= private_start or shown > last_dot) return shown;
    if (shown < first_listed) return shown - private_start;
    if (shown == last_space) return ' ';
    if (shown == last_dot) return '.';
    return static_cast<unsigned char>(listed[shown - first_listed]);
}

std::string_view shown_name(std::string_view name, std::string& storage) {
    if (is_shown_as_it_is(name)) return name;
    storage.clear();
    for (std::size_t at = 0; at < name.size();) {
        const name_character next = character_at(name, at);
        const std::string_view bytes = name.substr(at, next.length);
        at += next.length;
        const char32_t shown = shown_character(next.point, at == name.size());
        if (shown == next.point) {
            storage.append(bytes);
        } else {
            append_three_bytes(storage, shown);
        }
    }
    return storage;
}

std::string shown_path(std::string_view path) {
    std::string shown;
    std::string storage;
    while (not path.empty()) {
        const std::string_view name = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        if (not shown.empty()) shown += '/';
        shown += shown_name(name, storage);
    }
    return shown;
}

std::string_view host_name(std::string_view shown, std::string& storage) {
    // U+F000 to U+F029 all begin with this byte and have 0x80 as the second.
    if (not shown.contains("\xef\x80")) return shown;
    storage.clear();
    for (std::size_t at = 0; at < shown.size();) {
        const name_character next = character_at(shown, at);
        const char32_t mapped = host_character(next.point);
        if (mapped == next.point) {
            storage.append(shown.substr(at, next.length));
        } else {
            storage.push_back(static_cast<char>(mapped));
        }
        at += next.length;
    }
    return storage;
}

result<std::string_view> host_path(std::string_view shown, std::string& storage) {
    if (const auto valid = check_path(shown); not valid) return failure(valid.error());
    return host_name(shown, storage);
}

}  // namespace sluice::vfs
