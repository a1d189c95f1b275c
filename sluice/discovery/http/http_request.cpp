#include "sluice/discovery/http/http_request.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

namespace sluice::http {

namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view headers_end = "\r\n\r\n";

[[nodiscard]] bool is_token_character(char c) noexcept {
    constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    return (c >= '0' and c <= '9') or (c >= 'a' and c <= 'z') or (c >= 'A' and c <= 'Z') or
           others.find(c) != std::string_view::npos;
}
[[nodiscard]] bool is_token(std::string_view text) noexcept {
    return not text.empty() and std::ranges::all_of(text, is_token_character);
}
[[nodiscard]] bool is_visible(char c) noexcept {
    return c > 0x20 and c < 0x7f;
}
// Returns whether a header value may contain the character: visible characters, bytes of UTF-8,
// space, tab.
[[nodiscard]] bool is_value_character(char c) noexcept {
    return is_visible(c) or c == ' ' or c == '\t' or static_cast<unsigned char>(c) >= 0x80;
}

[[nodiscard]] bool is_header(std::string_view line) noexcept {
    const std::size_t colon = line.find(':');
    return colon != std::string_view::npos and is_token(line.substr(0, colon)) and
           std::ranges::all_of(line.substr(colon + 1), is_value_character);
}

// Removes and returns the text up to `separator`, which is removed as well, or the whole text
// without one.
[[nodiscard]] std::string_view take_until(std::string_view& text, std::string_view separator) noexcept {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(std::min(end + separator.size(), text.size()));
    return taken;
}

[[nodiscard]] bool is_called(std::string_view header, std::string_view name) noexcept {
    const auto lower = [](char c) { return c >= 'A' and c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
    return std::ranges::equal(header.substr(0, header.find(':')), name, {}, lower);
}

// Returns the number of a header; std::nullopt if it is not one.
[[nodiscard]] std::optional<std::size_t> number_of(std::string_view header) noexcept {
    std::string_view text = header.substr(header.find(':') + 1);
    while (text.starts_with(' ') or text.starts_with('\t'))
        text.remove_prefix(1);
    while (text.ends_with(' ') or text.ends_with('\t'))
        text.remove_suffix(1);
    std::size_t number = 0;
    const auto [rest, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (wrong != std::errc{} or rest != text.data() + text.size()) return std::nullopt;
    return number;
}

// Parses three parts with single spaces between them: method, target, version.
[[nodiscard]] http_request parse_line(std::string_view line) noexcept {
    const std::string_view method = take_until(line, " ");
    std::string_view target = take_until(line, " ");
    const bool is_line = is_token(method) and target.starts_with('/') and
                         std::ranges::all_of(target, is_visible) and line.starts_with("HTTP/");
    if (not is_line) return {.problem = http_status::bad_request};
    if (line != "HTTP/1.1" and line != "HTTP/1.0") return {.problem = http_status::version_not_supported};
    const http_method which = method == "GET"    ? http_method::get
                              : method == "HEAD" ? http_method::head
                              : method == "POST" ? http_method::post
                                                 : http_method::other;
    return {.problem = which == http_method::other ? http_status::method_not_allowed : http_status::ok,
            .method = which,
            .path = take_until(target, "?")};
}

}  // namespace

bool has_http_headers(std::string_view read) noexcept {
    return read.find(headers_end) != std::string_view::npos;
}

http_request parse_http_request(std::string_view read) noexcept {
    const std::size_t end = read.find(headers_end);
    if (end == std::string_view::npos)
        return {.problem = read.size() >= http_request_bytes_max ? http_status::headers_too_large
                                                                 : http_status::bad_request};
    std::string_view headers = read.substr(0, end + line_end.size());
    http_request request = parse_line(take_until(headers, line_end));
    request.header_bytes = end + headers_end.size();
    std::optional<std::size_t> length;
    while (not headers.empty()) {
        const std::string_view line = take_until(headers, line_end);
        if (not is_header(line)) return {.problem = http_status::bad_request};
        if (request.method != http_method::post or request.problem != http_status::ok) continue;
        if (is_called(line, "transfer-encoding")) return {.problem = http_status::length_required};
        if (not is_called(line, "content-length")) continue;
        // Two servers may choose different ones.
        if (length) return {.problem = http_status::bad_request};
        length = number_of(line);
        if (not length) return {.problem = http_status::bad_request};
    }
    if (request.method == http_method::post and request.problem == http_status::ok) {
        if (not length) return {.problem = http_status::length_required};
        request.content_bytes = *length;
    }
    return request;
}

}  // namespace sluice::http
