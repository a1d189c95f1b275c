#include "sluice/smb/server/metadata/file_name.hpp"

#include <algorithm>

#include "sluice/base/case_fold.hpp"
#include "sluice/smb/server/core/limits.hpp"
#include "sluice/smb/wire/utf16.hpp"

namespace sluice::smb::server {

using wire::nt_status;

namespace {

constexpr std::string_view not_in_components = "\"*/<>?|";
// The file of NTFS that quotas are queried by.
constexpr std::string_view quota_file = "$Extend\\$Quota:$Q:$INDEX_ALLOCATION";

[[nodiscard]] bool has_forbidden(std::string_view text) noexcept {
    return std::ranges::any_of(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20 or not_in_components.contains(c); });
}

// Components are limited by their UTF-16 length, which clients count in.
[[nodiscard]] bool is_too_long(std::string_view component) noexcept {
    const auto bytes = wire::utf16_bytes_of(component);
    return not bytes or * bytes > 2 * limits::component_units_max;
}

[[nodiscard]] nt_status check_component(std::string_view component) noexcept {
    if (has_forbidden(component) or is_too_long(component)) return nt_status::object_name_invalid;
    return nt_status::success;
}

// A path of which "." and ".." have been removed as text, before any link is followed ([MS-FSCC]
// 2.1.5.1).
class dotless_path {
public:
    explicit dotless_path(std::pmr::string& path) noexcept : path_(path) {}

    // Windows refuses "x\..\y" at the front of a path, but not further on ([MS-SMB2] 3.3.5.9).
    [[nodiscard]] nt_status add(std::string_view component) {
        if (component == ".") return nt_status::success;
        const bool is_parent = component == "..";
        ++components_;
        if (is_parent and path_.empty()) return nt_status::object_path_syntax_bad;
        if (is_parent and components_ == 2) return nt_status::invalid_parameter;
        if (is_parent) {
            const std::size_t slash = path_.rfind('/');
            path_.resize(slash == std::string_view::npos ? 0 : slash);
            return nt_status::success;
        }
        const nt_status status = check_component(component);
        if (status != nt_status::success) return status;
        if (not path_.empty()) path_ += '/';
        path_ += component;
        ENSURE(not path_.ends_with('/'), "a path ends with a component");
        return nt_status::success;
    }

private:
    std::pmr::string& path_;
    std::size_t components_ = 0;  // also those that were removed again, without "."
};

// Parses the part after the first colon: "stream", "stream:$DATA", ":$DATA", ":$INDEX_ALLOCATION".
[[nodiscard]] nt_status parse_stream(std::string_view text, file_name& name) {
    const std::size_t colon = text.find(':');
    const std::string_view stream = text.substr(0, colon);
    // A stream may have nearly any name, line breaks included.
    constexpr std::string_view not_in_streams("\0/\\", 3);
    if (stream.find_first_of(not_in_streams) != std::string_view::npos or is_too_long(stream))
        return nt_status::object_name_invalid;
    if (colon == std::string_view::npos) {
        if (stream.empty()) return nt_status::object_name_invalid;
    } else {
        const std::string_view type = text.substr(colon + 1);
        if (equal_ignoring_case(type, "$INDEX_ALLOCATION")) {
            // [MS-FSA] 2.1.5.1, phase 7.
            if (not stream.empty() and not equal_ignoring_case(stream, "$I30"))
                return nt_status::invalid_parameter;
            name.names_directory_index = true;
            return nt_status::success;
        }
        if (not equal_ignoring_case(type, "$DATA")) return nt_status::object_name_invalid;
    }
    name.names_stream = true;
    name.stream = stream;
    return nt_status::success;
}

}  // namespace

std::expected<file_name, nt_status> parse_file_name(bytes_view utf16, std::pmr::memory_resource& memory) {
    if (utf16.size() > 2 * limits::path_units_max) return std::unexpected(nt_status::object_name_invalid);
    std::pmr::string text(&memory);
    if (not wire::append_utf8_of(utf16, text)) return std::unexpected(nt_status::invalid_parameter);
    return parse_file_name_text(text, memory);
}

bool is_quota_file_name(std::string_view text) noexcept {
    return equal_ignoring_case(text, quota_file);
}

std::expected<file_name, nt_status> parse_file_name_text(std::string_view text,
                                                         std::pmr::memory_resource& memory) {
    std::string_view rest = text;
    if (rest.starts_with('\\')) return std::unexpected(nt_status::invalid_parameter);
    if (is_quota_file_name(text)) return std::unexpected(nt_status::object_path_not_found);
    file_name name{.path = std::pmr::string(&memory), .stream = {}};
    name.path.reserve(rest.size());
    if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
        const nt_status status = parse_stream(rest.substr(colon + 1), name);
        if (status != nt_status::success) return std::unexpected(status);
        rest = rest.substr(0, colon);
    }
    if (rest.ends_with('\\')) {
        name.ends_with_separator = true;
        rest.remove_suffix(1);
    }
    // Two separators in a row look for a directory with an empty name, which does not exist
    // ([MS-FSA] 2.1.5.1, phase 6). An invalid name anywhere in the path is found before that.
    bool is_path_missing = rest.ends_with('\\');
    dotless_path path(name.path);
    while (not rest.empty()) {
        const std::size_t separator = rest.find('\\');
        const std::string_view component = rest.substr(0, separator);
        rest = separator == std::string_view::npos ? std::string_view{} : rest.substr(separator + 1);
        if (component.empty()) {
            is_path_missing = true;
            continue;
        }
        const nt_status status = path.add(component);
        if (status != nt_status::success) return std::unexpected(status);
    }
    if (is_path_missing) return std::unexpected(nt_status::object_path_not_found);
    return name;
}

std::expected<std::string, nt_status> parse_stream_name(std::string_view text) {
    file_name name;
    if (not text.starts_with(':')) return std::unexpected(nt_status::invalid_parameter);
    const nt_status status = parse_stream(text.substr(1), name);
    if (status != nt_status::success) return std::unexpected(status);
    if (name.names_directory_index) return std::unexpected(nt_status::invalid_parameter);
    return name.stream;
}

}  // namespace sluice::smb::server
