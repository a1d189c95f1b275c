#include "sluice/discovery/http/http_request.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "sluice/base/case_fold.hpp"

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

// Removes and returns the text up to `separator`, which is removed as well, or the whole text
// without one.
[[nodiscard]] std::string_view take_until(std::string_view& text, std::string_view separator) noexcept {
    const std::size_t end = std::min(text.find(separator), text.size());
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(std::min(end + separator.size(), text.size()));
    return taken;
}

[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view blank = " \t";
    const std::size_t first = std::min(text.find_first_not_of(blank), text.size());
    text.remove_prefix(first);
    return text.substr(0, text.find_last_not_of(blank) + 1);
}

template <class Number>
[[nodiscard]] std::optional<Number> number_of(std::string_view text) noexcept {
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, problem] = std::from_chars(text.data(), end, value);
    return problem == std::errc{} and stopped == end ? std::optional(value) : std::nullopt;
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
    http_request request{
        .problem = which == http_method::other ? http_status::method_not_allowed : http_status::ok,
        .method = which,
        .path = take_until(target, "?")};
    request.query = target;
    return request;
}

// Facts of the headers that were parsed.
struct header_state {
    std::optional<std::size_t> body_bytes;
    bool has_coding = false;
    unsigned seen = 0;  // a bit for each known header
};

// Stores a header, if replies depend on it. Returns false if it is malformed, or there already.
[[nodiscard]] bool take_header(std::string_view line, http_headers& into, header_state& state) noexcept {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (not is_token(name) or not std::ranges::all_of(value, is_value_character)) return false;
    if (equal_ignoring_case(name, std::string_view("transfer-encoding"))) {
        state.has_coding = true;
        return true;
    }
    if (equal_ignoring_case(name, std::string_view("content-length"))) {
        const bool is_first = not state.body_bytes.has_value();
        state.body_bytes = number_of<std::size_t>(value);
        return is_first and state.body_bytes.has_value();
    }
    struct known_header {
        std::string_view name;
        std::string_view* value;
    };
    const std::array known{known_header{"host", &into.host},
                           known_header{"origin", &into.origin},
                           known_header{"sec-fetch-site", &into.fetch_site},
                           known_header{"cookie", &into.cookie},
                           known_header{"authorization", &into.authorization},
                           known_header{"content-type", &into.content_type}};
    for (std::size_t i = 0; i != known.size(); ++i) {
        if (not equal_ignoring_case(name, known[i].name)) continue;
        const bool is_first = (state.seen & 1U << i) == 0;
        state.seen |= 1U << i;
        *known[i].value = value;
        return is_first;
    }
    return true;
}

[[nodiscard]] std::optional<char> hexadecimal(std::string_view digits) noexcept {
    unsigned char value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stopped, problem] = std::from_chars(digits.data(), end, value, 16);
    if (digits.size() != 2 or problem != std::errc{} or stopped != end) return std::nullopt;
    return static_cast<char>(value);
}

[[nodiscard]] std::optional<std::string> decoded(std::string_view encoded) {
    std::string text;
    for (std::size_t i = 0; i != encoded.size(); ++i) {
        if (encoded[i] != '%') {
            text += encoded[i] == '+' ? ' ' : encoded[i];
            continue;
        }
        const auto value = hexadecimal(encoded.substr(i + 1, 2));
        if (not value) return std::nullopt;
        text += *value;
        i += 2;
    }
    return text;
}

}  // namespace

std::string_view reason_of(http_status status) noexcept {
    switch (status) {
        case http_status::ok:
            return "OK";
        case http_status::see_other:
            return "See Other";
        case http_status::bad_request:
            return "Bad Request";
        case http_status::unauthorized:
            return "Unauthorized";
        case http_status::forbidden:
            return "Forbidden";
        case http_status::not_found:
            return "Not Found";
        case http_status::method_not_allowed:
            return "Method Not Allowed";
        case http_status::length_required:
            return "Length Required";
        case http_status::content_too_large:
            return "Content Too Large";
        case http_status::unsupported_media_type:
            return "Unsupported Media Type";
        case http_status::misdirected_request:
            return "Misdirected Request";
        case http_status::too_many_requests:
            return "Too Many Requests";
        case http_status::headers_too_large:
            return "Request Header Fields Too Large";
        case http_status::version_not_supported:
            return "HTTP Version Not Supported";
    }
    return "";
}

bool has_http_headers(std::string_view read) noexcept {
    return read.find(headers_end) != std::string_view::npos;
}

bool has_http_form(std::string_view read) noexcept {
    if (not has_http_headers(read)) return false;
    const http_request head = parse_http_request(read);
    return head.problem != http_status::ok or head.content_bytes > http_body_bytes_max or
           head.content_bytes <= read.size() - head.header_bytes;
}

http_request parse_http_request(std::string_view read) noexcept {
    const std::size_t end = read.find(headers_end);
    if (end == std::string_view::npos)
        return {.problem = read.size() >= http_request_bytes_max ? http_status::headers_too_large
                                                                 : http_status::bad_request};
    std::string_view headers = read.substr(0, end + line_end.size());
    http_request request = parse_line(take_until(headers, line_end));
    request.header_bytes = end + headers_end.size();
    header_state state;
    while (not headers.empty())
        if (not take_header(take_until(headers, line_end), request.headers, state))
            return {.problem = http_status::bad_request};
    if (request.problem != http_status::ok) return request;
    const bool is_post = request.method == http_method::post;
    if (state.has_coding or (is_post and not state.body_bytes))
        return {.problem = http_status::length_required, .method = request.method};
    if (is_post) request.content_bytes = *state.body_bytes;
    return request;
}

http_request parse_http_form(std::string_view read) noexcept {
    http_request request = parse_http_request(read);
    if (request.problem != http_status::ok) return request;
    if (request.content_bytes > http_body_bytes_max)
        return {.problem = http_status::content_too_large, .method = request.method};
    if (request.content_bytes > read.size() - request.header_bytes)
        return {.problem = http_status::bad_request, .method = request.method};
    request.body = read.substr(request.header_bytes, request.content_bytes);
    return request;
}

std::optional<std::string> form_value(std::string_view form, std::string_view name) {
    while (not form.empty()) {
        std::string_view value = take_until(form, "&");
        if (take_until(value, "=") == name) return decoded(value);
    }
    return std::nullopt;
}

std::optional<std::uint64_t> form_number(std::string_view form, std::string_view name) {
    const std::optional<std::string> text = form_value(form, name);
    return text ? number_of<std::uint64_t>(*text) : std::nullopt;
}

}  // namespace sluice::http
